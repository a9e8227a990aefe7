import { session } from "../api/session.ts";
import { ConfirmDialog } from "../parts/confirm.tsx";
import { Toasts } from "../parts/toasts.tsx";
import { Frame } from "./frame.tsx";
import { SignIn } from "./sign-in.tsx";

/** The console, or the sign-in where nobody is signed in. */
export function App() {
  return (
    <>
      {session.value ? <Frame /> : <SignIn />}
      <ConfirmDialog />
      <Toasts />
    </>
  );
}
