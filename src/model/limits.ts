/** Every limit on outside input, with its reason. Lengths are in UTF-16 code units, as JavaScript counts. */
export const LIMITS = {
  /** A summary is one line in a list; longer text belongs in the description. */
  summaryChars: 500,
  /** About 2,500 tokens: enough for a hand-over, small enough to be read back whole. */
  descriptionChars: 10_000,
  contextPairs: 50,
  contextKeyChars: 50,
  contextValueChars: 500,
  tags: 20,
  tagChars: 50,
  /** Linux's PATH_MAX; a project is a folder on the client side. */
  projectPathChars: 4_096,
  listDefault: 10,
  listMax: 100,
  /** Deep offsets cost a scan; beyond this, page by cursor. */
  offsetMax: 1_000_000,
  /** What an answer about checkpoints may cost an agent unless it asks for more; a whole one costs at most about 12,000. */
  answerTokens: 8_000,
  /** Code is read in pieces: some ten of them, or a file of six hundred lines. */
  codeAnswerTokens: 6_000,
  answerTokensMin: 200,
  answerTokensMax: 100_000,
  /** Records in one page of an export or one call of an import: at most about 4 MB. */
  transferRecords: 100,
  cursorChars: 500,
  idChars: 100,
  labelChars: 200,
  /** Every request looks through the keys; more than this many wants an identity provider in front. */
  apiKeys: 1_000,
  keyProjects: 1_000,
  queryChars: 1_000,
  /** Room for an error with its stack: a remediation's question, and what is searched for it. */
  questionChars: 4_000,
  answerChars: 20_000,
  categoryChars: 200,
  /** One import is one transaction, embedded before it: a hundred seconds or so with the local model. */
  importRecords: 10_000,
  importBytes: 16 * 1024 * 1024,
  /** Columns of a CSV file. Names are compared pairwise. */
  importColumns: 500,
  importTimeoutMs: 1_800_000,
  saveTimeoutMs: 30_000,
  searchTimeoutMs: 10_000,
  listTimeoutMs: 5_000,
  /** Deleting or embedding thousands of records takes minutes. */
  upkeepTimeoutMs: 600_000,
  /** A day: a large database takes hours over a slow line, and stopping is always safe. */
  migrateTimeoutMs: 86_400_000,
  /** A URL with a password and options. */
  urlChars: 2_000,
  /** A check reads a whole database, which may be gigabytes. */
  databaseTimeoutMs: 600_000,
  /** A backup reads every database twice and writes it once; what takes longer than an hour wants PostgreSQL. */
  backupTimeoutMs: 3_600_000,
  /** A batch of code is at most 1 MB of content; JSON escaping can double it, and the envelope needs room. */
  bodyBytes: 4 * 1024 * 1024,
  /** Levels of lists and objects in a JSON text; validation walks them recursively. The deepest input of an operation has five. */
  jsonDepth: 64,
  /** Fields and items in a JSON text: a manifest of 10,000 paths has 10,000. Parsing 50,000 fields of one object takes about 30 ms. */
  jsonValues: 50_000,
  /** The same for an import: 10,000 records of 50 columns. */
  importJsonValues: 500_000,
  /** A file of more is data or was made by a program. The same as the walk's. */
  codeFileBytes: 1_000_000,
  /** Longer paths do not fit into an index of PostgreSQL together with the project's. */
  codePathBytes: 1_024,
  /** The paths of one tree and their hashes are held in memory, which takes about 130 MB then. */
  codeTreeFiles: 200_000,
  /** How long a person may wait for an index. */
  indexWaitMs: 24 * 60 * 60 * 1_000,
  codeBatchFiles: 1_000,
  codeBatchBytes: 2 * 1024 * 1024,
  /** Paths in one page of a manifest or one question for hashes: about 1 MB of JSON. */
  codeManifestPaths: 10_000,
  globChars: 500,
  symbolChars: 200,
  codeContextLines: 100,
  /** How long one call may wait for a job; proxies give up on silent connections after a minute or so. */
  codeJobWaitMs: 20_000,
  /** Milliseconds that a call waits at most for a lock, a connection or a migration; a call with a shorter time limit waits less. */
  lockWaitMs: 30_000,
  /** A run or node id is a name, not a document. */
  runKeyChars: 200,
  /** Beyond this a state belongs in a file or a table; a checkpoint must fit in memory, twice. */
  runStateBytes: 100_000_000,
  /** Smaller states cost more to compress than they save. */
  runCompressAboveBytes: 1_000_000,
  /** The question of a pause, or the reason of a failure. */
  runNoteChars: 64_000,
  /** A system's id names its file, so it is short and plain. */
  systemIdChars: 100,
  /** Component, port and message id make one key; together they must fit into an index of PostgreSQL. */
  systemNameChars: 100,
  systemMessageIdChars: 300,
  /** Each has a queue in every process that uses it. */
  systemComponents: 1_000,
  /** All of them are in the memory of a process that uses their component. */
  systemPorts: 1_000,
  systemStateKeyChars: 300,
  /** Larger data belongs in a file; the message then names it. */
  systemMessageBytes: 1024 * 1024,
  systemStateValueBytes: 1024 * 1024,
  /** One effect is one message's work, and all of it commits in one step. */
  systemEffectWrites: 1_000,
  systemEffectTimeoutMs: 30_000,
  /** Messages of one component that wait in memory for their commit. More are refused until some are stored. */
  systemQueueMessages: 10_000,
  systemQueueBytes: 64 * 1024 * 1024,
  /** What one commit takes: enough for a thousand messages per second at one commit per second. */
  systemBatchMessages: 2_000,
  systemBatchBytes: 8 * 1024 * 1024,
  /** Offsets beyond a missing one that a port remembers. */
  systemOffsetsAhead: 100_000,
  /** Messages of one port that wait for an effect. */
  systemPendingMessages: 100_000,
  systemReasonChars: 2_000,
  /** A cursor names a component and a port, in base64. */
  systemCursorChars: 2_000,
  systemAttempts: 1_000,
  /** A snapshot passes through memory; larger systems are for backups. */
  systemSnapshotBytes: 256 * 1024 * 1024,
  systemSnapshotsKept: 1_000,
} as const;

/** PostgreSQL connections that one process opens at most, by what they are for. */
export const POOL_SIZES = { poolSize: 10, runsPoolSize: 5, systemsPoolSize: 5 } as const;
