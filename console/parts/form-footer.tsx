/** The buttons of a form in a dialog. */
export function FormFooter({ onCancel }: { readonly onCancel: () => void }) {
  return (
    <footer>
      <button type="button" onClick={onCancel}>
        Cancel
      </button>
      <button type="submit" class="primary">
        Save
      </button>
    </footer>
  );
}
