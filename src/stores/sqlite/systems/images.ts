import type { ComponentImage, ComponentOverview, MessageStatus } from "../../../model/system.ts";
import { snapshotTooLargeError } from "../../../model/system-rules.ts";
import { type MessageRow, toMessage } from "../../rows/message-row.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { portsOf, putAhead, putMessage, putPort, putState } from "./rows.ts";

interface ComponentRow {
  component_name: string;
  version: number;
  updated_at: string;
}

const COMPONENTS = "SELECT * FROM components ORDER BY component_name";

/** Returns the images of the requested components. */
export function collectImages(
  tx: SqliteTx,
  { components, maxBytes }: { readonly components?: readonly string[]; readonly maxBytes: number },
): ComponentImage[] {
  let left = maxBytes;
  return tx
    .all<ComponentRow>(COMPONENTS)
    .filter(({ component_name }) => !components || components.includes(component_name))
    .map(({ component_name: component, version }) => {
      left -= tx.get<{ bytes: number }>(`SELECT ${STATE_BYTES} + ${OPEN_BYTES} AS bytes`, component, component)!.bytes;
      if (left < 0) throw snapshotTooLargeError(maxBytes);
      return {
        component,
        version,
        ports: portsOf(tx, component),
        messages: tx.all<MessageRow>(`SELECT c.* ${OPEN_MESSAGES} ORDER BY c.port_name, c.offset`, component).map(toMessage),
        state: tx
          .all<{ key: string; value: Uint8Array }>("SELECT key, value FROM state WHERE component_name = ? ORDER BY key", component)
          .map(({ key, value }) => [key, value] as const),
      };
    });
}

const OPEN_MESSAGES = `FROM checkpoints c JOIN ports p USING (component_name, port_name)
  WHERE component_name = ? AND (c.status <> 'done' OR c.offset > p.position)`;
const STATE_BYTES = "(SELECT coalesce(sum(length(value)), 0) FROM state WHERE component_name = ?)";
const OPEN_BYTES = `(SELECT coalesce(sum(length(c.data)), 0) ${OPEN_MESSAGES})`;

export function restoreImages(tx: SqliteTx, images: readonly ComponentImage[], at: string): void {
  tx.run("UPDATE components SET version = version + 1, updated_at = ?", at);
  tx.run("DELETE FROM state");
  tx.run("DELETE FROM offsets_ahead");
  tx.run("DELETE FROM ports");
  for (const { component, ports, state } of images) {
    tx.run("INSERT INTO components (component_name, version, updated_at) VALUES (?, 1, ?) ON CONFLICT DO NOTHING", component, at);
    for (const port of ports) {
      putPort(tx, component, { ...port, prunedTo: port.position });
      for (const offset of port.ahead) putAhead(tx, component, port.port, offset);
    }
    for (const [key, value] of state) putState(tx, component, key, value);
  }
  // Deletes messages that were received after the image or unprocessed in it.
  tx.run(`DELETE FROM checkpoints WHERE status <> 'done' OR NOT EXISTS (
    SELECT 1 FROM ports p WHERE p.component_name = checkpoints.component_name AND p.port_name = checkpoints.port_name
      AND checkpoints.offset <= p.position)`);
  for (const { component, messages } of images)
    for (const message of messages) {
      tx.run("DELETE FROM checkpoints WHERE component_name = ? AND port_name = ? AND message_id = ?", component, message.port, message.id);
      putMessage(tx, component, message);
    }
}

export function systemOverview(tx: SqliteTx): ComponentOverview[] {
  return tx.all<ComponentRow>(COMPONENTS).map(({ component_name: component, version, updated_at }) => {
    const state = tx.get<{ keys: number; bytes: number }>(
      "SELECT count(*) AS keys, coalesce(sum(length(value)), 0) AS bytes FROM state WHERE component_name = ?",
      component,
    )!;
    const counted = tx.all<{ port_name: string; status: MessageStatus; messages: number }>(
      "SELECT port_name, status, count(*) AS messages FROM checkpoints WHERE component_name = ? GROUP BY port_name, status",
      component,
    );
    const count = (port: string, status: MessageStatus) =>
      counted.find((row) => row.port_name === port && row.status === status)?.messages ?? 0;
    return {
      component,
      version,
      updatedAt: updated_at,
      stateKeys: state.keys,
      stateBytes: state.bytes,
      ports: portsOf(tx, component).map((port) => ({
        ...port,
        ahead: port.ahead.length,
        pending: count(port.port, "pending"),
        done: count(port.port, "done"),
        dead: count(port.port, "dead"),
      })),
    };
  });
}
