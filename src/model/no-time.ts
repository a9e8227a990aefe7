/** The reason why a call that visits all projects left one out. */
export const NO_TIME = "the time of the call was over";
