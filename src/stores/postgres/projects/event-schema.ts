import { EVENTS_TABLE } from "../driver/event-log.ts";

/** Returns the triggers that write the events of a table of records. */
function eventTriggers(table: "checkpoints" | "knowledge"): string {
  return `
CREATE TRIGGER ${table}_stored AFTER INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION record_stored();
CREATE TRIGGER ${table}_edited AFTER UPDATE OF revision ON ${table}
  FOR EACH ROW WHEN (NEW.revision <> OLD.revision) EXECUTE FUNCTION record_edited('edited');
CREATE TRIGGER ${table}_removed AFTER DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION record_removed();
`;
}

/** Whether the part with `deleted_records` exists. */
const HAS_DELETED = "to_regclass(quote_ident(TG_TABLE_SCHEMA) || '.deleted_records') IS NOT NULL";

/** The events of records. `deleted_records` distinguishes restored from new records, and deleted from purged ones. */
export const EVENT_SCHEMA = `
${EVENTS_TABLE}
CREATE FUNCTION event_kind(collection text) RETURNS text LANGUAGE sql IMMUTABLE
  AS 'SELECT CASE collection WHEN ''checkpoints'' THEN ''checkpoint'' ELSE collection END';
CREATE FUNCTION record_stored() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  forgotten bigint = 0;
BEGIN
  IF ${HAS_DELETED} THEN
    DELETE FROM deleted_records WHERE collection = TG_TABLE_NAME AND id = NEW.id;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
  END IF;
  INSERT INTO events (kind, action, id) VALUES (event_kind(TG_TABLE_NAME), CASE WHEN forgotten > 0 THEN 'restored' ELSE 'saved' END, NEW.id);
  RETURN NULL;
END $$;
CREATE FUNCTION record_edited() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO events (kind, action, id) VALUES (event_kind(TG_TABLE_NAME), TG_ARGV[0], NEW.id);
  RETURN NULL;
END $$;
CREATE FUNCTION record_removed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  is_deleted boolean = false;
BEGIN
  IF ${HAS_DELETED} THEN
    is_deleted = EXISTS (SELECT 1 FROM deleted_records WHERE collection = TG_TABLE_NAME AND id = OLD.id);
  END IF;
  INSERT INTO events (kind, action, id) VALUES (event_kind(TG_TABLE_NAME), CASE WHEN is_deleted THEN 'deleted' ELSE 'purged' END, OLD.id);
  RETURN NULL;
END $$;
${eventTriggers("checkpoints")}
`;

/** The events of deleted records. A deleted record of knowledge exists only if the table of knowledge does. */
export const DELETED_EVENT_SCHEMA = `
CREATE FUNCTION deleted_record_purged() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  is_visible boolean;
BEGIN
  IF OLD.collection = 'knowledge' THEN
    is_visible = EXISTS (SELECT 1 FROM knowledge WHERE id = OLD.id);
  ELSE
    is_visible = EXISTS (SELECT 1 FROM checkpoints WHERE id = OLD.id);
  END IF;
  IF NOT is_visible THEN
    INSERT INTO events (kind, action, id) VALUES (event_kind(OLD.collection), 'purged', OLD.id);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER deleted_records_purged AFTER DELETE ON deleted_records FOR EACH ROW EXECUTE FUNCTION deleted_record_purged();
`;

/** The events of knowledge. */
export const KNOWLEDGE_EVENT_SCHEMA = `${eventTriggers("knowledge")}
CREATE TRIGGER knowledge_used AFTER UPDATE OF uses, outdated ON knowledge
  FOR EACH ROW WHEN (NEW.revision = OLD.revision) EXECUTE FUNCTION record_edited('feedback');
`;
