import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { call, type Input, type OperationName, type Output } from "../api/call.ts";
import { onEvent, type StoreEvent } from "../api/events.ts";

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: Error | undefined;
  readonly loading: boolean;
  readonly reload: () => void;
}

/** How long events are collected before a call is repeated: one save can cause several. */
const SETTLE_MS = 250;

/**
 * Calls an operation when its input changes, and again when an event that it depends on arrives. The previous answer stays until the
 * next one is there, so that a page does not flicker. Without input nothing is called. `basis` is what the answer depends on besides the
 * input: when it changes, the call is repeated.
 */
export function useCall<Name extends OperationName>(
  name: Name,
  input: Input<Name> | undefined,
  dependsOn?: (event: StoreEvent) => boolean,
  basis?: string,
): Loaded<Output<Name>> {
  const [state, setState] = useState<{ data?: Output<Name>; error?: Error; loading: boolean }>({ loading: input !== undefined });
  const [version, setVersion] = useState(0);
  const reload = useCallback(() => setVersion((count) => count + 1), []);
  const key = input === undefined ? undefined : JSON.stringify(input);

  useEffect(() => {
    if (key === undefined) return setState({ loading: false });
    const controller = new AbortController();
    setState((previous) => ({ ...previous, loading: true }));
    call(name, JSON.parse(key) as Input<Name>, controller.signal).then(
      (data) => controller.signal.aborted || setState({ data, loading: false }),
      (error: Error) => controller.signal.aborted || setState({ error, loading: false }),
    );
    return () => controller.abort();
  }, [name, key, version, basis]);

  const depends = useRef(dependsOn);
  depends.current = dependsOn;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onEvent((event) => {
      if (!depends.current?.(event)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        reload();
      }, SETTLE_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [reload]);

  return { data: state.data, error: state.error, loading: state.loading, reload };
}
