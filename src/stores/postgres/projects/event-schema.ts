import { EVENTS_TABLE } from "../driver/event-log.ts";

/**
 * Returns the triggers that write the events of a table of records. They name the table and the kind of its records: on Citus a trigger
 * runs on a shard, which has another name.
 */
function eventTriggers(table: "checkpoints" | "knowledge", kind: string): string {
  const named = `'${table}', '${kind}'`;
  return `
CREATE TRIGGER ${table}_stored AFTER INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION record_stored(${named});
CREATE TRIGGER ${table}_edited AFTER UPDATE OF revision ON ${table}
  FOR EACH ROW WHEN (NEW.revision <> OLD.revision) EXECUTE FUNCTION record_edited(${named}, 'edited');
CREATE TRIGGER ${table}_removed AFTER DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION record_removed(${named});
`;
}

/** Whether the part with `deleted_records` exists. */
const HAS_DELETED = "to_regclass(quote_ident(TG_TABLE_SCHEMA) || '.deleted_records') IS NOT NULL";

/**
 * The events of records. `deleted_records` distinguishes restored from new records, and deleted from purged ones. Values are computed
 * before the statement that stores them: Citus sends the statement elsewhere.
 */
export const EVENT_SCHEMA = `
${EVENTS_TABLE}
CREATE FUNCTION record_stored() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  record_collection text = TG_ARGV[0];
  record_kind text = TG_ARGV[1];
  what text = 'saved';
BEGIN
  IF ${HAS_DELETED} THEN
    DELETE FROM deleted_records WHERE collection = record_collection AND id = NEW.id;
    IF FOUND THEN
      what = 'restored';
    END IF;
  END IF;
  INSERT INTO events (kind, action, id) VALUES (record_kind, what, NEW.id);
  RETURN NULL;
END $$;
CREATE FUNCTION record_edited() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  record_kind text = TG_ARGV[1];
  what text = TG_ARGV[2];
BEGIN
  INSERT INTO events (kind, action, id) VALUES (record_kind, what, NEW.id);
  RETURN NULL;
END $$;
CREATE FUNCTION record_removed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  record_collection text = TG_ARGV[0];
  record_kind text = TG_ARGV[1];
  what text = 'purged';
BEGIN
  IF ${HAS_DELETED} THEN
    PERFORM 1 FROM deleted_records WHERE collection = record_collection AND id = OLD.id;
    IF FOUND THEN
      what = 'deleted';
    END IF;
  END IF;
  INSERT INTO events (kind, action, id) VALUES (record_kind, what, OLD.id);
  RETURN NULL;
END $$;
${eventTriggers("checkpoints", "checkpoint")}
`;

/** The events of deleted records. A deleted record of knowledge exists only if the table of knowledge does. */
export const DELETED_EVENT_SCHEMA = `
CREATE FUNCTION deleted_record_purged() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  record_kind text = 'checkpoint';
BEGIN
  IF OLD.collection = 'knowledge' THEN
    record_kind = 'knowledge';
    PERFORM 1 FROM knowledge WHERE id = OLD.id;
  ELSE
    PERFORM 1 FROM checkpoints WHERE id = OLD.id;
  END IF;
  IF NOT FOUND THEN
    INSERT INTO events (kind, action, id) VALUES (record_kind, 'purged', OLD.id);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER deleted_records_purged AFTER DELETE ON deleted_records FOR EACH ROW EXECUTE FUNCTION deleted_record_purged();
`;

/** The events of knowledge. */
export const KNOWLEDGE_EVENT_SCHEMA = `${eventTriggers("knowledge", "knowledge")}
CREATE TRIGGER knowledge_used AFTER UPDATE OF uses, outdated ON knowledge
  FOR EACH ROW WHEN (NEW.revision = OLD.revision) EXECUTE FUNCTION record_edited('knowledge', 'knowledge', 'feedback');
`;
