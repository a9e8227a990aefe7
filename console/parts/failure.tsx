/** Says what went wrong and what to do, in the server's words, with a way to try again. */
export function Failure({ error, retry }: { readonly error: Error; readonly retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
