import { useState } from "preact/hooks";
import { signIn } from "../api/session.ts";
import { Command } from "../parts/empty.tsx";

/** Asks for a credential. On the machine of the server, `cairn ui` signs in by itself. */
export function SignIn() {
  const [key, setKey] = useState("");
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn({ key: key.trim() });
    } catch (failure) {
      setError((failure as Error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <h1>Cairn</h1>
      <p>On the machine that runs the server, this command opens the console and signs you in:</p>
      <Command text="cairn ui" />
      <form onSubmit={submit}>
        <label for="key">Elsewhere, sign in with an API key</label>
        <div class="field">
          <input
            id="key"
            type="password"
            autocomplete="off"
            spellcheck={false}
            placeholder="cairn_…"
            value={key}
            aria-invalid={error !== undefined}
            aria-describedby="key-error"
            onInput={(event) => setKey(event.currentTarget.value)}
          />
          <button type="submit" class="primary" disabled={isBusy || key.trim() === ""}>
            Sign in
          </button>
        </div>
        <p id="key-error" class="problem" role="alert">
          {error}
        </p>
      </form>
      <p class="soft">
        <code>cairn key create "my browser" --access read</code> makes a key. <a href="docs">The API</a> is described without one.
      </p>
    </main>
  );
}
