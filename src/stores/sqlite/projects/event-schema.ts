import { EVENTS_TABLE } from "../driver/event-log.ts";

/** The events of records. `deleted_records` distinguishes restored from new records, and deleted from purged ones. */
export const EVENT_SCHEMA = `
${EVENTS_TABLE}
${recordTriggers("checkpoints", "checkpoint")}
${recordTriggers("knowledge", "knowledge")}
CREATE TRIGGER knowledge_used AFTER UPDATE OF uses, outdated ON knowledge WHEN NEW.revision = OLD.revision
BEGIN
  INSERT INTO events (kind, action, id) VALUES ('knowledge', 'feedback', NEW.id);
END;
CREATE TRIGGER deleted_records_purged AFTER DELETE ON deleted_records
  WHEN NOT EXISTS (SELECT 1 FROM checkpoints WHERE OLD.collection = 'checkpoints' AND id = OLD.id)
   AND NOT EXISTS (SELECT 1 FROM knowledge WHERE OLD.collection = 'knowledge' AND id = OLD.id)
BEGIN
  INSERT INTO events (kind, action, id) VALUES (CASE OLD.collection WHEN 'checkpoints' THEN 'checkpoint' ELSE OLD.collection END, 'purged', OLD.id);
END;
`;

function recordTriggers(collection: string, kind: string): string {
  const isDeleted = (row: "NEW" | "OLD") => `EXISTS (SELECT 1 FROM deleted_records WHERE collection = '${collection}' AND id = ${row}.id)`;
  return `
CREATE TRIGGER ${collection}_stored AFTER INSERT ON ${collection}
BEGIN
  INSERT INTO events (kind, action, id) SELECT '${kind}', CASE WHEN ${isDeleted("NEW")} THEN 'restored' ELSE 'saved' END, NEW.id;
  DELETE FROM deleted_records WHERE collection = '${collection}' AND id = NEW.id;
END;
CREATE TRIGGER ${collection}_edited AFTER UPDATE OF revision ON ${collection} WHEN NEW.revision <> OLD.revision
BEGIN
  INSERT INTO events (kind, action, id) VALUES ('${kind}', 'edited', NEW.id);
END;
CREATE TRIGGER ${collection}_removed AFTER DELETE ON ${collection}
BEGIN
  INSERT INTO events (kind, action, id) SELECT '${kind}', CASE WHEN ${isDeleted("OLD")} THEN 'deleted' ELSE 'purged' END, OLD.id;
END;`;
}
