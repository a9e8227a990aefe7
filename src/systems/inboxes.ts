import type { Effect } from "./effect.ts";
import type { WorkReport } from "./port.ts";
import type { System } from "./system.ts";

/** The effects of a system's ports, by component and port. */
export type Handlers = Readonly<Record<string, Readonly<Record<string, Effect>>>>;

/** A port with the effect of its messages: pass it to a worker, which drains it. */
export interface Inbox {
  readonly name: string;
  work(options: { readonly signal: AbortSignal }): Promise<WorkReport>;
}

/** Returns one inbox per port of the handlers. Messages that were stored by `receive` without an effect have their effect there, exactly once. */
export function inboxes(system: System, handlers: Handlers): readonly Inbox[] {
  return Object.entries(handlers).flatMap(([component, ports]) =>
    Object.entries(ports).map(([port, effect]) => ({
      name: `${system.systemId}/${component}/${port}`,
      work: (options: { readonly signal: AbortSignal }) => system.component(component).port(port).work(effect, options),
    })),
  );
}
