import type { MessageHead, PortPosition, StoredMessage } from "../model/system.ts";
import { newPort } from "../model/system-rules.ts";
import type { ComponentChange, LoadedPort, SystemStore } from "../ports/system-store.ts";

/** The cached state of a component at one version. It is discarded when the version changes. */
export interface View {
  readonly version: number;
  readonly ports: ReadonlyMap<string, PortView>;
  /** Values that were read or written; `null` for a key without one. Filled on demand. */
  readonly state: Map<string, Uint8Array | null>;
}

interface PortView {
  readonly row: PortPosition;
  readonly ahead: ReadonlySet<number>;
  readonly pending: number;
}

export function viewOf(version: number, ports: readonly LoadedPort[]): View {
  return {
    version,
    ports: new Map(ports.map(({ ahead, pending, ...row }) => [row.port, { row, ahead: new Set(ahead), pending }])),
    state: new Map(),
  };
}

/** The maximum size of the value cache. A larger cache is cleared. */
const CACHE_KEYS = 10_000;
const CACHE_BYTES = 16 * 1024 * 1024;

/** An uncommitted change of a component. */
export class Draft {
  readonly #store: SystemStore;
  readonly #component: string;
  readonly #view: View;
  readonly #heads: Map<string, MessageHead>;
  readonly #written = new Map<string, StoredMessage>();
  readonly #ports = new Map<string, PortDraft>();
  readonly #state = new Map<string, Uint8Array | null>();

  constructor(store: SystemStore, component: string, view: View, heads: readonly MessageHead[]) {
    this.#store = store;
    this.#component = component;
    this.#view = view;
    this.#heads = new Map(heads.flatMap((head) => [[idKey(head), head] as const, [offsetKey(head), head] as const]));
  }

  port(name: string, firstOffset = 0): PortDraft {
    let port = this.#ports.get(name);
    if (!port) {
      const seen = this.#view.ports.get(name) ?? { row: newPort(name, firstOffset), ahead: new Set<number>(), pending: 0 };
      port = new PortDraft(seen);
      this.#ports.set(name, port);
    }
    return port;
  }

  /** Returns whether the component has this port or may add it. */
  hasRoomFor(port: string, ports: number): boolean {
    if (this.#view.ports.has(port) || this.#ports.get(port)?.changed) return true;
    const added = [...this.#ports].filter(([name, { changed }]) => changed && !this.#view.ports.has(name)).length;
    return this.#view.ports.size + added < ports;
  }

  /** Returns the message with this id as of this draft. */
  message(port: string, id: string): MessageHead | undefined {
    return this.#heads.get(idKey({ port, id }));
  }

  messageAt(port: string, offset: number): MessageHead | undefined {
    return this.#heads.get(offsetKey({ port, offset }));
  }

  put(message: StoredMessage): void {
    const before = this.message(message.port, message.id);
    this.port(message.port).pending += Number(message.status === "pending") - Number(before?.status === "pending");
    const { data: _, ...head } = message;
    this.#heads.set(idKey(head), head);
    this.#heads.set(offsetKey(head), head);
    const written = this.#written.get(idKey(head));
    this.#written.set(idKey(head), written ? { ...message, data: written.data } : message);
  }

  /** Whether the store redacts secrets. */
  get redacts(): boolean {
    return this.#store.redactState !== undefined;
  }

  /** Returns the value without secrets if the store redacts them. */
  redact(value: unknown): unknown {
    return this.#store.redactState ? this.#store.redactState(value) : value;
  }

  /** Returns the value as of this draft. */
  async value(key: string): Promise<Uint8Array | null> {
    const drafted = this.#state.get(key);
    if (drafted !== undefined) return drafted;
    const cached = this.#view.state.get(key);
    if (cached !== undefined) return cached;
    const [stored = null] = await this.#store.state(this.#component, [key]);
    this.#view.state.set(key, stored);
    return stored;
  }

  write(values: ReadonlyMap<string, Uint8Array | null>): void {
    for (const [key, value] of values) this.#state.set(key, value);
  }

  get changed(): boolean {
    return this.#written.size > 0 || this.#state.size > 0 || [...this.#ports.values()].some(({ changed }) => changed);
  }

  change(at: string): ComponentChange {
    return {
      component: this.#component,
      version: this.#view.version,
      at,
      messages: [...this.#written.values()],
      ports: [...this.#ports.values()].filter(({ changed }) => changed).map((port) => port.change()),
      state: [...this.#state],
    };
  }

  /** Returns the cached state after a successful commit. */
  accepted(): View {
    const ports = new Map(this.#view.ports);
    for (const [name, port] of this.#ports) if (port.changed || ports.has(name)) ports.set(name, port.view());
    const state = this.#view.state;
    for (const [key, value] of this.#state) state.set(key, value);
    if (state.size > CACHE_KEYS || sizeOf(state) > CACHE_BYTES) state.clear();
    return { version: this.#view.version + Number(this.changed), ports, state };
  }
}

/** One port of a draft: its position after the commit. */
export class PortDraft {
  pending: number;
  #row: PortPosition;
  readonly #before: PortView;
  #ahead: Set<number> | undefined; // a copy, made when the first offset is added
  readonly #added = new Set<number>();
  #closesGap = false;

  constructor(before: PortView) {
    this.#before = before;
    this.#row = before.row;
    this.pending = before.pending;
  }

  get row(): PortPosition {
    return this.#row;
  }

  get ahead(): ReadonlySet<number> {
    return this.#ahead ?? this.#before.ahead;
  }

  get changed(): boolean {
    return this.#row !== this.#before.row || this.#added.size > 0;
  }

  /** Returns whether this offset was already received. */
  has(offset: number): boolean {
    return offset <= this.#row.position || this.ahead.has(offset);
  }

  /** Marks the offset as received and advances the position to the first gap. */
  mark(offset: number): void {
    if (this.has(offset)) return;
    const highest = Math.max(this.#row.highest, offset);
    this.#ahead ??= new Set(this.#before.ahead);
    let { position } = this.#row;
    if (offset === position + 1) {
      position = offset;
      while (this.#ahead.delete(position + 1)) {
        position++;
        this.#closesGap = true;
      }
    } else {
      this.#ahead.add(offset);
      this.#added.add(offset);
    }
    this.#row = { ...this.#row, position, highest };
  }

  /** Allows the deletion of finished messages at or below this offset. */
  prune(to: number): void {
    if (to > this.#row.prunedTo) this.#row = { ...this.#row, prunedTo: Math.min(to, this.#row.position) };
  }

  change() {
    const aheadAdded = [...this.#added].filter((offset) => offset > this.#row.position);
    return { ...this.#row, aheadAdded, closesGap: this.#closesGap };
  }

  view(): PortView {
    return { row: this.#row, ahead: this.ahead, pending: this.pending };
  }
}

// Ids contain no NUL, so keys are unique.
function idKey({ port, id }: { readonly port: string; readonly id: string }): string {
  return `${port}\0i${id}`;
}

function offsetKey({ port, offset }: { readonly port: string; readonly offset: number }): string {
  return `${port}\0o${offset}`;
}

function sizeOf(state: ReadonlyMap<string, Uint8Array | null>): number {
  let size = 0;
  for (const value of state.values()) size += value?.byteLength ?? 0;
  return size;
}
