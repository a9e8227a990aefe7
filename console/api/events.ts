/** A change in the store: which kind of record, what happened, and in which project. */
export interface StoreEvent {
  readonly kind: string;
  readonly action: string;
  readonly project?: string;
  readonly id?: string;
}

type Handler = (event: StoreEvent) => void;
const handlers = new Set<Handler>();

/** Registers a handler for changes in the store and returns the function that removes it. */
export function onEvent(handler: Handler): () => void {
  handlers.add(handler);
  return () => handlers.delete(handler);
}

/** Passes an event to all handlers: one of the server, or one that an action of this page caused. */
export function emit(event: StoreEvent): void {
  for (const handler of handlers) handler(event);
}
