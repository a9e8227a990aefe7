import type { ComponentImage, MessageStatus, PortPosition, SnapshotInfo, SnapshotPart, StoredMessage } from "../../model/system.ts";
import { assertSystemId, byBytes, snapshotNotFoundError, snapshotTooLargeError } from "../../model/system-rules.ts";
import type { SystemStorage, SystemStore } from "../../ports/system-store.ts";

/** Systems that end with the process, for tests and for trials. */
export function memorySystemStorage(): SystemStorage {
  const stores = new Map<string, SystemStore>();
  return {
    async create(systemId) {
      assertSystemId(systemId);
      let store = stores.get(systemId);
      if (!store) {
        store = memorySystemStore(systemId);
        stores.set(systemId, store);
      }
      return store;
    },
    async find(systemId) {
      assertSystemId(systemId);
      return stores.get(systemId);
    },
    async systems() {
      return [...stores.keys()].sort(byBytes);
    },
    location: () => "memory",
    async sizeBytes() {
      return undefined;
    },
    async close() {},
  };
}

interface Component {
  version: number;
  updatedAt: string;
  readonly ports: Map<string, Port>;
  readonly state: Map<string, Uint8Array>;
}

interface Port {
  row: PortPosition;
  readonly ahead: Set<number>;
  readonly messages: Map<string, StoredMessage>;
}

function memorySystemStore(systemId: string): SystemStore {
  const components = new Map<string, Component>();
  const snapshots: { info: SnapshotInfo; readonly parts: Map<string, SnapshotPart> }[] = []; // oldest first

  const component = (name: string): Component => {
    let found = components.get(name);
    if (!found) {
      found = { version: 0, updatedAt: "", ports: new Map(), state: new Map() };
      components.set(name, found);
    }
    return found;
  };
  const snapshot = (id: string) => {
    const found = snapshots.find(({ info }) => info.id === id);
    if (!found) throw snapshotNotFoundError(id);
    return found;
  };

  return {
    systemId,

    async load(name, keys, knownVersion) {
      const found = components.get(name);
      const version = found?.version ?? 0;
      return {
        version,
        ports:
          version === knownVersion
            ? undefined
            : [...(found?.ports.values() ?? [])].map((port) => ({ ...offsetsOf(port), pending: count(port, "pending") })),
        messages: keys.map((key) => {
          const port = found?.ports.get(key.port);
          const message = "id" in key ? port?.messages.get(key.id) : [...(port?.messages.values() ?? [])].find(at(key.offset));
          if (!message) return undefined;
          const { data: _, ...head } = message;
          return head;
        }),
      };
    },

    async state(name, keys) {
      const state = components.get(name)?.state;
      return keys.map((key) => copy(state?.get(key)));
    },

    async commit(change) {
      const target = component(change.component);
      if (target.version !== change.version) return false;
      target.version++;
      target.updatedAt = change.at;
      for (const { aheadAdded, closesGap: _, ...row } of change.ports) {
        const port = target.ports.get(row.port) ?? { row, ahead: new Set(), messages: new Map() };
        port.row = row;
        for (const offset of aheadAdded) port.ahead.add(offset);
        for (const offset of port.ahead) if (offset <= row.position) port.ahead.delete(offset);
        target.ports.set(row.port, port);
      }
      for (const message of change.messages) {
        const { messages } = target.ports.get(message.port)!;
        const { status, attempts, reason } = message;
        const before = messages.get(message.id);
        messages.set(message.id, before ? { ...before, status, attempts, reason } : { ...message, data: copy(message.data) });
      }
      for (const [key, value] of change.state) value === null ? target.state.delete(key) : target.state.set(key, copy(value));
      return true;
    },

    async messages({ component: name, port, status, after, limit }) {
      const all = [...components].flatMap(([component, { ports }]) =>
        [...ports.values()].flatMap(({ messages }) => [...messages.values()].map((message) => ({ ...message, component }))),
      );
      const order = (a: { component: string; port: string; offset: number }, b: typeof a) =>
        byBytes(a.component, b.component) || byBytes(a.port, b.port) || a.offset - b.offset;
      return all
        .filter((message) => message.status === status && (name ?? message.component) === message.component)
        .filter((message) => (port ?? message.port) === message.port && (!after || order(message, after) > 0))
        .sort(order)
        .slice(0, limit)
        .map((message) => ({ ...message, data: copy(message.data) }));
    },

    async firstSince(name, port, timestamp) {
      const messages = [...(components.get(name)?.ports.get(port)?.messages.values() ?? [])];
      const offsets = messages.filter((message) => message.timestamp >= timestamp).map(({ offset }) => offset);
      return offsets.length === 0 ? undefined : offsets.reduce((a, b) => Math.min(a, b));
    },

    async sweep(name, portName, { upTo, limit }) {
      const port = components.get(name)?.ports.get(portName);
      let swept = 0;
      for (const { id, status, offset } of port?.messages.values() ?? []) {
        if (swept === limit) break;
        if (status !== "done" || offset > Math.min(upTo, port!.row.prunedTo)) continue;
        port!.messages.delete(id);
        swept++;
      }
      return swept;
    },

    async overview() {
      return [...components]
        .filter(([, { version }]) => version > 0)
        .sort(([a], [b]) => byBytes(a, b))
        .map(([name, { version, updatedAt, ports, state }]) => ({
          component: name,
          version,
          updatedAt,
          stateKeys: state.size,
          stateBytes: [...state.values()].reduce((sum, value) => sum + value.byteLength, 0),
          ports: [...ports.values()]
            .sort((a, b) => byBytes(a.row.port, b.row.port))
            .map((port) => ({
              ...port.row,
              ahead: port.ahead.size,
              pending: count(port, "pending"),
              done: count(port, "done"),
              dead: count(port, "dead"),
            })),
        }));
    },

    async collect({ components: names, maxBytes }) {
      const chosen = [...components].filter(([name, { version }]) => version > 0 && (!names || names.includes(name)));
      const images = chosen.sort(([a], [b]) => byBytes(a, b)).map(([name, found]) => imageOf(name, found));
      const bytes = images.reduce(
        (sum, { state, messages }) =>
          sum +
          sizeOf(
            [...state.values()].map(([, value]) => value),
            messages,
          ),
        0,
      );
      if (bytes > maxBytes) throw snapshotTooLargeError(maxBytes);
      return images;
    },

    async restore(images, now) {
      for (const { component: name } of images) component(name);
      for (const [name, target] of components) {
        const image = images.find((candidate) => candidate.component === name);
        target.version++;
        target.updatedAt = now;
        target.state.clear();
        for (const [key, value] of image?.state ?? []) target.state.set(key, copy(value));
        const before = new Map(target.ports);
        target.ports.clear();
        for (const { ahead, ...row } of image?.ports ?? []) {
          const kept = [...(before.get(row.port)?.messages.values() ?? [])].filter(
            ({ status, offset }) => status === "done" && offset <= row.position,
          );
          const again = image!.messages
            .filter(({ port }) => port === row.port)
            .map((message) => ({ ...message, data: copy(message.data) }));
          const messages = new Map([...kept, ...again].map((message) => [message.id, message]));
          target.ports.set(row.port, { row: { ...row, prunedTo: row.position }, ahead: new Set(ahead), messages });
        }
      }
    },

    async beginSnapshot(begun) {
      const info = { ...begun, complete: false, checksum: null, components: 0, messages: 0, stateKeys: 0, bytes: 0 };
      snapshots.push({ info, parts: new Map() });
    },

    async addSnapshotPart(id, part) {
      snapshot(id).parts.set(part.component, { ...part, data: copy(part.data) });
    },

    async completeSnapshot(id, completion) {
      const found = snapshot(id);
      found.info = { ...found.info, ...completion, complete: true };
    },

    async snapshots() {
      return snapshots.map(({ info }) => info).reverse();
    },

    async snapshotParts(id) {
      const parts = [...snapshot(id).parts.values()].sort((a, b) => byBytes(a.component, b.component));
      return parts.map((part) => ({ ...part, data: copy(part.data) }));
    },

    async deleteSnapshot(id) {
      const index = snapshots.findIndex(({ info }) => info.id === id);
      if (index !== -1) snapshots.splice(index, 1);
    },
  };
}

function imageOf(component: string, { version, ports, state }: Component): ComponentImage {
  const sorted = [...ports.values()].sort((a, b) => byBytes(a.row.port, b.row.port));
  return {
    component,
    version,
    ports: sorted.map(offsetsOf),
    messages: sorted.flatMap(({ row, messages }) =>
      [...messages.values()]
        .filter(({ status, offset }) => status !== "done" || offset > row.position)
        .sort((a, b) => a.offset - b.offset)
        .map((message) => ({ ...message, data: copy(message.data) })),
    ),
    state: [...state].sort(([a], [b]) => byBytes(a, b)).map(([key, value]) => [key, copy(value)] as const),
  };
}

function count({ messages }: Port, status: MessageStatus): number {
  return [...messages.values()].filter((message) => message.status === status).length;
}

function offsetsOf({ row, ahead }: Port) {
  return { ...row, ahead: [...ahead].sort((a, b) => a - b) };
}

const at =
  (offset: number) =>
  (message: StoredMessage): boolean =>
    message.offset === offset;

function sizeOf(values: readonly Uint8Array[], messages: readonly StoredMessage[]): number {
  return [...values, ...messages.map(({ data }) => data)].reduce((sum, bytes) => sum + (bytes?.byteLength ?? 0), 0);
}

function copy<Bytes extends Uint8Array | null | undefined>(bytes: Bytes): Bytes {
  return (bytes ? Uint8Array.from(bytes) : bytes) as Bytes;
}
