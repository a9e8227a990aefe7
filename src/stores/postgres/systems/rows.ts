import type { PortOffsets, PortPosition, StoredMessage } from "../../../model/system.ts";
import type { ComponentChange } from "../../../ports/system-store.ts";
import type { PostgresTx } from "../driver/driver.ts";
import { toTimestamp } from "../driver/time.ts";

interface PortRow {
  port_name: string;
  first_offset: number;
  position: number;
  highest: number;
  pruned_to: number;
}

export async function portsOf(tx: PostgresTx, component: string): Promise<PortOffsets[]> {
  const ports = await tx.all<PortRow>("SELECT * FROM ports WHERE component_name = $1 ORDER BY port_name", component);
  const ahead = await tx.all<{ port_name: string; offset: number }>(
    `SELECT port_name, "offset" FROM offsets_ahead WHERE component_name = $1 ORDER BY port_name, "offset"`,
    component,
  );
  return ports.map((row) => ({
    port: row.port_name,
    firstOffset: row.first_offset,
    position: row.position,
    highest: row.highest,
    prunedTo: row.pruned_to,
    ahead: ahead.filter(({ port_name }) => port_name === row.port_name).map(({ offset }) => offset),
  }));
}

/** Writes the whole change if its version is still the newest. The component's row then stays locked until the end of the transaction. */
export async function applyChange(tx: PostgresTx, { component, version, at, messages, ports, state }: ComponentChange): Promise<boolean> {
  const time = toTimestamp(at);
  const changed =
    version === 0
      ? await tx.run(
          "INSERT INTO components (component_name, version, updated_at) VALUES ($1, 1, $2) ON CONFLICT DO NOTHING",
          component,
          time,
        )
      : await tx.run(
          "UPDATE components SET version = version + 1, updated_at = $3 WHERE component_name = $1 AND version = $2",
          component,
          version,
          time,
        );
  if (changed === 0) return false;
  await putPorts(tx, component, ports);
  for (const { port, aheadAdded } of ports) if (aheadAdded.length > 0) await putAhead(tx, component, port, aheadAdded);
  for (const { port, position, closesGap } of ports)
    if (closesGap)
      await tx.run(`DELETE FROM offsets_ahead WHERE component_name = $1 AND port_name = $2 AND "offset" <= $3`, component, port, position);
  await putMessages(tx, component, messages);
  const removed = state.filter(([, value]) => value === null).map(([key]) => key);
  if (removed.length > 0) await tx.run("DELETE FROM state WHERE component_name = $1 AND key = ANY ($2::text[])", component, removed);
  await putState(
    tx,
    component,
    state.filter((entry): entry is readonly [string, Uint8Array] => entry[1] !== null),
  );
  return true;
}

export async function putPorts(tx: PostgresTx, component: string, ports: readonly PortPosition[]): Promise<void> {
  if (ports.length === 0) return;
  await tx.run(
    `INSERT INTO ports (component_name, port_name, first_offset, position, highest, pruned_to)
     SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
     ON CONFLICT (component_name, port_name) DO UPDATE SET
       first_offset = excluded.first_offset, position = excluded.position, highest = excluded.highest, pruned_to = excluded.pruned_to`,
    component,
    ports.map(({ port }) => port),
    ports.map(({ firstOffset }) => firstOffset),
    ports.map(({ position }) => position),
    ports.map(({ highest }) => highest),
    ports.map(({ prunedTo }) => prunedTo),
  );
}

export async function putAhead(tx: PostgresTx, component: string, port: string, offsets: readonly number[]): Promise<void> {
  await tx.run(
    `INSERT INTO offsets_ahead (component_name, port_name, "offset") SELECT $1, $2, * FROM unnest($3::bigint[]) ON CONFLICT DO NOTHING`,
    component,
    port,
    offsets,
  );
}

export async function putMessages(tx: PostgresTx, component: string, messages: readonly StoredMessage[]): Promise<void> {
  if (messages.length === 0) return;
  await tx.run(
    `INSERT INTO checkpoints (component_name, port_name, message_id, "offset", timestamp, status, attempts, reason, data)
     SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::double precision[], $6::text[], $7::integer[], $8::text[], $9::bytea[])
     ON CONFLICT (component_name, port_name, message_id) DO UPDATE SET
       status = excluded.status, attempts = excluded.attempts, reason = excluded.reason`,
    component,
    messages.map(({ port }) => port),
    messages.map(({ id }) => id),
    messages.map(({ offset }) => offset),
    messages.map(({ timestamp }) => timestamp),
    messages.map(({ status }) => status),
    messages.map(({ attempts }) => attempts),
    messages.map(({ reason }) => reason),
    messages.map(({ data }) => data),
  );
}

export async function putState(tx: PostgresTx, component: string, state: readonly (readonly [string, Uint8Array])[]): Promise<void> {
  if (state.length === 0) return;
  await tx.run(
    `INSERT INTO state (component_name, key, value) SELECT $1, * FROM unnest($2::text[], $3::bytea[])
     ON CONFLICT (component_name, key) DO UPDATE SET value = excluded.value`,
    component,
    state.map(([key]) => key),
    state.map(([, value]) => value),
  );
}
