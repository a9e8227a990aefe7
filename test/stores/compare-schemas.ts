import type { Catalog, CatalogColumn } from "./schema-catalog.ts";

/** A table (`table`) or column (`table.column`) that only one engine has, and the reason. */
export type IntendedDifferences = Readonly<Record<string, { readonly only: "SQLite" | "PostgreSQL"; readonly reason: string }>>;

export interface ComparedSchemas {
  readonly sqlite: Catalog;
  readonly postgres: Catalog;
  readonly migration: Catalog;
  /** Tables that the migration does not copy. */
  readonly derived: readonly string[];
  readonly intended: IntendedDifferences;
}

/** The declared types of SQLite that can store a PostgreSQL type. */
const SQLITE_TYPES: Readonly<Record<string, readonly string[]>> = {
  text: ["TEXT"],
  _text: ["TEXT"],
  jsonb: ["TEXT"],
  int4: ["INTEGER"],
  int8: ["INTEGER"],
  bool: ["INTEGER", "BOOLEAN"],
  timestamptz: ["TIMESTAMP", "TEXT"],
  float4: ["REAL"],
  float8: ["REAL"],
  bytea: ["BLOB"],
  vector: ["BLOB"],
};

/** The PostgreSQL type of each column type of the migration. */
const POSTGRES_TYPE: Readonly<Record<string, string>> = { time: "timestamptz", bytes: "bytea", texts: "_text", names: "jsonb" };

/** Returns every disagreement between the SQLite schema, the PostgreSQL schema and the migration that is not intended. */
export function compareSchemas({ sqlite, postgres, migration, derived, intended }: ComparedSchemas): string[] {
  const problems: string[] = [];
  const used = new Set<string>();
  const report = (name: string, only: "SQLite" | "PostgreSQL") => {
    used.add(name);
    if (intended[name]?.only !== only) problems.push(`${name} exists only in ${only}`);
  };

  for (const [name, left, right] of joined(sqlite, postgres)) {
    if (!right) report(name, "SQLite");
    else if (!left) report(name, "PostgreSQL");
    else
      for (const [column, here, there] of joined(left, right)) {
        if (!there) report(`${name}.${column}`, "SQLite");
        else if (!here) report(`${name}.${column}`, "PostgreSQL");
        else problems.push(...columnProblems(`${name}.${column}`, here, there));
      }
    if (!migration.has(name) && !derived.includes(name)) problems.push(`${name} is neither copied by the migration nor derived`);
  }

  for (const [name, copied] of migration) {
    const stored = postgres.get(name);
    if (!stored) problems.push(`the migration copies ${name}, which PostgreSQL does not have`);
    else
      for (const [column, shape, actual] of joined(copied, stored)) {
        if (!actual) problems.push(`the migration copies ${name}.${column}, which PostgreSQL does not have`);
        else if (!shape && actual.type !== "tsvector" && column !== "term_count")
          problems.push(`the migration does not copy ${name}.${column}`);
        else if (shape && (POSTGRES_TYPE[shape.type] ?? shape.type) !== actual.type)
          problems.push(`the migration copies ${name}.${column} as ${shape.type}, and PostgreSQL stores ${actual.type}`);
        else if (shape && shape.nullable !== actual.nullable)
          problems.push(`the migration and PostgreSQL differ in NULL of ${name}.${column}`);
      }
  }

  for (const name of Object.keys(intended)) if (!used.has(name)) problems.push(`${name} is listed as a difference and is none`);
  return problems;
}

function columnProblems(name: string, sqlite: CatalogColumn, postgres: CatalogColumn): string[] {
  const fits = SQLITE_TYPES[postgres.type]?.includes(sqlite.type);
  return [
    ...(fits ? [] : [`${name} is ${sqlite.type} in SQLite and ${postgres.type} in PostgreSQL`]),
    ...(sqlite.nullable === postgres.nullable ? [] : [`${name} allows NULL in only one engine`]),
  ];
}

function joined<T>(
  left: ReadonlyMap<string, T>,
  right: ReadonlyMap<string, T>,
): [name: string, left: T | undefined, right: T | undefined][] {
  return [...new Set([...left.keys(), ...right.keys()])].map((name) => [name, left.get(name), right.get(name)]);
}
