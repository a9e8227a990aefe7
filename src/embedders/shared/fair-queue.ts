/** Work of several connections, taken in a fair order. */
export interface FairQueue<Connection, Item> {
  push(connection: Connection, item: Item, urgent: boolean): void;
  /** Takes the next item: urgent ones first, and one item of each connection in turn. */
  take(): Item | undefined;
  /** Drops the items of a connection that has ended. */
  drop(connection: Connection): void;
}

/** Urgent items in a row while others wait: a stream of queries must not stop all saves. */
const URGENT_IN_A_ROW = 4;

export function fairQueue<Connection, Item>(): FairQueue<Connection, Item> {
  const urgent = turns<Connection, Item>();
  const other = turns<Connection, Item>();
  let inARow = 0;
  return {
    push: (connection, item, isUrgent) => (isUrgent ? urgent : other).push(connection, item),
    take() {
      const first = inARow < URGENT_IN_A_ROW ? urgent : other;
      const item = first.take();
      if (item !== undefined) {
        inARow = first === urgent ? inARow + 1 : 0;
        return item;
      }
      inARow = 0;
      return (first === urgent ? other : urgent).take();
    },
    drop(connection) {
      urgent.drop(connection);
      other.drop(connection);
    },
  };
}

/** Takes one item of each connection in turn. A map keeps the order of insertion, so its first entry is the next in turn. */
function turns<Connection, Item>() {
  const waiting = new Map<Connection, Item[]>();
  return {
    push(connection: Connection, item: Item) {
      const items = waiting.get(connection);
      if (items) items.push(item);
      else waiting.set(connection, [item]);
    },
    take(): Item | undefined {
      for (const [connection, items] of waiting) {
        const item = items.shift();
        waiting.delete(connection);
        if (items.length > 0) waiting.set(connection, items);
        return item;
      }
      return undefined;
    },
    drop: (connection: Connection) => void waiting.delete(connection),
  };
}
