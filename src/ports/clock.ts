/** The current time as ISO 8601 in UTC with milliseconds. */
export type Clock = () => string;

export const systemClock: Clock = () => new Date().toISOString();
