import type { ComponentImage, ComponentOverview, MessageStatus } from "../../../model/system.ts";
import { snapshotTooLargeError } from "../../../model/system-rules.ts";
import { type MessageRow, toMessage } from "../../rows/message-row.ts";
import type { PostgresTx } from "../driver/driver.ts";
import { toTimestamp } from "../driver/time.ts";
import { portsOf, putAhead, putMessages, putPorts, putState } from "./rows.ts";

interface ComponentRow {
  component_name: string;
  version: number;
  updated_at: string;
}

const COMPONENTS = "SELECT component_name, version, updated_at FROM components ORDER BY component_name";

/** Returns the images of the requested components. */
export async function collectImages(
  tx: PostgresTx,
  { components, maxBytes }: { readonly components?: readonly string[]; readonly maxBytes: number },
): Promise<ComponentImage[]> {
  const images: ComponentImage[] = [];
  let left = maxBytes;
  for (const { component_name: component, version } of await tx.all<ComponentRow>(COMPONENTS)) {
    if (components && !components.includes(component)) continue;
    left -= (await tx.get<{ bytes: number }>(SIZE, component))!.bytes;
    if (left < 0) throw snapshotTooLargeError(maxBytes);
    const messages = await tx.all<MessageRow>(`SELECT c.* ${OPEN_MESSAGES} ORDER BY c.port_name, c."offset"`, component);
    const state = await tx.all<{ key: string; value: Uint8Array }>(
      "SELECT key, value FROM state WHERE component_name = $1 ORDER BY key",
      component,
    );
    images.push({
      component,
      version,
      ports: await portsOf(tx, component),
      messages: messages.map(toMessage),
      state: state.map(({ key, value }) => [key, value] as const),
    });
  }
  return images;
}

const OPEN_MESSAGES = `FROM checkpoints c JOIN ports p USING (component_name, port_name)
  WHERE component_name = $1 AND (c.status <> 'done' OR c."offset" > p.position)`;
const SIZE = `SELECT (SELECT coalesce(sum(length(value)), 0) FROM state WHERE component_name = $1)::bigint
  + (SELECT coalesce(sum(length(c.data)), 0) ${OPEN_MESSAGES})::bigint AS bytes`;

export async function restoreImages(tx: PostgresTx, images: readonly ComponentImage[], at: string): Promise<void> {
  // Every commit changes a row of this table first, so that from here on all of them wait for the end of the restore.
  await tx.exec("LOCK TABLE components IN EXCLUSIVE MODE");
  await tx.run("UPDATE components SET version = version + 1, updated_at = $1", toTimestamp(at));
  for (const table of ["state", "offsets_ahead", "ports"]) await tx.exec(`DELETE FROM ${table}`);
  for (const { component, ports, state } of images) {
    await tx.run(
      "INSERT INTO components (component_name, version, updated_at) VALUES ($1, 1, $2) ON CONFLICT DO NOTHING",
      component,
      toTimestamp(at),
    );
    await putPorts(
      tx,
      component,
      ports.map((port) => ({ ...port, prunedTo: port.position })),
    );
    for (const { port, ahead } of ports) await putAhead(tx, component, port, ahead);
    for (let start = 0; start < state.length; start += ROWS_AT_ONCE)
      await putState(tx, component, state.slice(start, start + ROWS_AT_ONCE));
  }
  // Deletes messages that were received after the image or unprocessed in it.
  await tx.exec(`DELETE FROM checkpoints c WHERE status <> 'done' OR NOT EXISTS (
    SELECT 1 FROM ports p WHERE p.component_name = c.component_name AND p.port_name = c.port_name AND c."offset" <= p.position)`);
  for (const { component, messages } of images)
    for (let start = 0; start < messages.length; start += ROWS_AT_ONCE) {
      const some = messages.slice(start, start + ROWS_AT_ONCE);
      await tx.run(
        `DELETE FROM checkpoints c USING unnest($2::text[], $3::text[]) AS again (port, id)
         WHERE c.component_name = $1 AND c.port_name = again.port AND c.message_id = again.id`,
        component,
        some.map(({ port }) => port),
        some.map(({ id }) => id),
      );
      await putMessages(tx, component, some);
    }
}

/** Rows in one statement: values may have a megabyte each. */
const ROWS_AT_ONCE = 100;

export async function systemOverview(tx: PostgresTx): Promise<ComponentOverview[]> {
  const overviews: ComponentOverview[] = [];
  for (const { component_name: component, version, updated_at } of await tx.all<ComponentRow>(COMPONENTS)) {
    const state = (await tx.get<{ keys: number; bytes: number }>(
      "SELECT count(*) AS keys, coalesce(sum(length(value)), 0)::bigint AS bytes FROM state WHERE component_name = $1",
      component,
    ))!;
    const counted = await tx.all<{ port_name: string; status: MessageStatus; messages: number }>(
      "SELECT port_name, status, count(*) AS messages FROM checkpoints WHERE component_name = $1 GROUP BY port_name, status",
      component,
    );
    const count = (port: string, status: MessageStatus) =>
      counted.find((row) => row.port_name === port && row.status === status)?.messages ?? 0;
    overviews.push({
      component,
      version,
      updatedAt: updated_at,
      stateKeys: state.keys,
      stateBytes: state.bytes,
      ports: (await portsOf(tx, component)).map((port) => ({
        ...port,
        ahead: port.ahead.length,
        pending: count(port.port, "pending"),
        done: count(port.port, "done"),
        dead: count(port.port, "dead"),
      })),
    });
  }
  return overviews;
}
