import { expect, it } from "vitest";
import { splitStatements } from "../../src/stores/postgres/driver/split-statements.ts";
import { projectSchema } from "../../src/stores/postgres/projects/project-schema.ts";

it("splits a schema at the semicolons outside of texts, bodies and comments", () => {
  const sql = `
    CREATE TABLE a (b text DEFAULT 'x;''y'); -- a comment; with a semicolon
    CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
    CREATE FUNCTION g() RETURNS text LANGUAGE sql AS $body$ SELECT '$$;' $body$`;
  expect(splitStatements(sql)).toEqual([
    "CREATE TABLE a (b text DEFAULT 'x;''y')",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
    "CREATE FUNCTION g() RETURNS text LANGUAGE sql AS $body$ SELECT '$$;' $body$",
  ]);
});

it("finds statements that Citus accepts in every part of a project's schema", () => {
  for (const { sql } of Object.values(projectSchema.parts))
    for (const statement of splitStatements(sql))
      expect(statement).toMatch(/^(CREATE (TABLE|UNIQUE INDEX|INDEX|VIEW|FUNCTION|TRIGGER)|INSERT INTO) /);
});
