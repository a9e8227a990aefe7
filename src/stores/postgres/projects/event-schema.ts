import { EVENTS_TABLE } from "../driver/event-log.ts";

/** The events of records. `deleted_records` distinguishes restored from new records, and deleted from purged ones. */
export const EVENT_SCHEMA = `
${EVENTS_TABLE}
CREATE FUNCTION event_kind(collection text) RETURNS text LANGUAGE sql IMMUTABLE
  AS 'SELECT CASE collection WHEN ''checkpoints'' THEN ''checkpoint'' ELSE collection END';
CREATE FUNCTION record_stored() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  forgotten bigint;
BEGIN
  DELETE FROM deleted_records WHERE collection = TG_TABLE_NAME AND id = NEW.id;
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  INSERT INTO events (kind, action, id) VALUES (event_kind(TG_TABLE_NAME), CASE WHEN forgotten > 0 THEN 'restored' ELSE 'saved' END, NEW.id);
  RETURN NULL;
END $$;
CREATE FUNCTION record_edited() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO events (kind, action, id) VALUES (event_kind(TG_TABLE_NAME), TG_ARGV[0], NEW.id);
  RETURN NULL;
END $$;
CREATE FUNCTION record_removed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO events (kind, action, id) SELECT event_kind(TG_TABLE_NAME),
    CASE WHEN EXISTS (SELECT 1 FROM deleted_records WHERE collection = TG_TABLE_NAME AND id = OLD.id) THEN 'deleted' ELSE 'purged' END, OLD.id;
  RETURN NULL;
END $$;
CREATE FUNCTION deleted_record_purged() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM checkpoints WHERE OLD.collection = 'checkpoints' AND id = OLD.id)
     AND NOT EXISTS (SELECT 1 FROM knowledge WHERE OLD.collection = 'knowledge' AND id = OLD.id) THEN
    INSERT INTO events (kind, action, id) VALUES (event_kind(OLD.collection), 'purged', OLD.id);
  END IF;
  RETURN NULL;
END $$;
${["checkpoints", "knowledge"]
  .map(
    (table) => `CREATE TRIGGER ${table}_stored AFTER INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION record_stored();
CREATE TRIGGER ${table}_edited AFTER UPDATE OF revision ON ${table}
  FOR EACH ROW WHEN (NEW.revision <> OLD.revision) EXECUTE FUNCTION record_edited('edited');
CREATE TRIGGER ${table}_removed AFTER DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION record_removed();`,
  )
  .join("\n")}
CREATE TRIGGER knowledge_used AFTER UPDATE OF uses, outdated ON knowledge
  FOR EACH ROW WHEN (NEW.revision = OLD.revision) EXECUTE FUNCTION record_edited('feedback');
CREATE TRIGGER deleted_records_purged AFTER DELETE ON deleted_records FOR EACH ROW EXECUTE FUNCTION deleted_record_purged();
`;
