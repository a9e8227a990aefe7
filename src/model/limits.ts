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
  /** Anchors of one record: more files than a reader checks. */
  anchors: 32,
  /** A path or a symbol, with two hashes. */
  anchorChars: 600,
  /** Names in one text that are looked up as anchors. Each costs a lookup in the code index. */
  anchorCandidates: 100,
  /** Records whose names one call looks up: each costs a few queries. */
  anchorRecords: 100,
  /** Milliseconds that the freshness of one answer may take, and the most that can be set: a review compares all records in less. */
  freshnessMs: 5,
  freshnessMsMax: 60_000,
  /** Newest records of each kind that a review reads. Their anchors are compared in one call. */
  reviewRecords: 1_000,
  /** Records that one record replaces. */
  supersedes: 20,
  /** Linux's PATH_MAX; a project is a folder on the client side. */
  projectPathChars: 4_096,
  listDefault: 10,
  listMax: 100,
  /** Tags that one list returns. They are short, so a person can see all of them. */
  tagsListed: 1_000,
  /** Days that one count returns: more than ten years. */
  daysListed: 4_000,
  /** Projects that one list of all checkpoints reads. Each one opens a database. */
  projectsListed: 1_000,
  /** Deep offsets cost a scan; beyond this, page by cursor. */
  offsetMax: 1_000_000,
  /** Default token budget of an answer with checkpoints. A complete checkpoint has at most about 12,000 tokens. */
  answerTokens: 8_000,
  /** Default token budget of an answer with code: about ten chunks, or a file of 600 lines. */
  codeAnswerTokens: 6_000,
  answerTokensMin: 200,
  answerTokensMax: 100_000,
  /** Records in one page of an export or one call of an import: at most about 4 MB. */
  transferRecords: 100,
  /** Days that a deleted record can be restored: long enough to notice a mistake after a holiday. */
  deletedDays: 30,
  deletedDaysMax: 3_650,
  cursorChars: 500,
  idChars: 100,
  labelChars: 200,
  /** Longer than a UUID with a prefix. */
  idempotencyKeyChars: 200,
  /** Every request scans the keys. Use an identity provider for more. */
  apiKeys: 1_000,
  keyOverlapHours: 720,
  keyProjects: 1_000,
  queryChars: 1_000,
  /** A question to code search or knowledge: an issue with its stack traces. It is split into its parts, of which a bounded number is searched. */
  longQuestionChars: 32_000,
  /** Large enough for an error with its stack trace, as a record. */
  questionChars: 4_000,
  answerChars: 20_000,
  categoryChars: 200,
  /** An import embeds all records, then commits one transaction: about 100 s with the local model. */
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
  /** One day: a large database takes hours over a slow connection. Interrupting a migration is safe. */
  migrateTimeoutMs: 86_400_000,
  /** A URL with a password and options. */
  urlChars: 2_000,
  /** A check reads a whole database, which may be gigabytes. */
  databaseTimeoutMs: 600_000,
  /** A backup reads every database twice and writes it once. Databases that take longer than an hour belong on PostgreSQL. */
  backupTimeoutMs: 3_600_000,
  /** A batch of code is at most 2 MB of content; JSON escaping can double it, and the envelope needs room. */
  bodyBytes: 4 * 1024 * 1024,
  /** Levels of lists and objects in a JSON text; validation walks them recursively. The deepest input of an operation has five. */
  jsonDepth: 64,
  /** Fields and items in a JSON text: a manifest of 10,000 paths has 10,000. Parsing 50,000 fields of one object takes about 30 ms. */
  jsonValues: 50_000,
  /** The same for an import: 10,000 records of 50 columns. */
  importJsonValues: 500_000,
  /** Larger files are data or generated. */
  codeFileBytes: 1_000_000,
  /** Longer paths do not fit into a PostgreSQL index together with the project path. */
  codePathBytes: 1_024,
  /** All paths and hashes of a tree are in memory: about 130 MB at this limit. */
  codeTreeFiles: 200_000,
  /** The maximum time that a call waits for an index job. */
  indexWaitMs: 24 * 60 * 60 * 1_000,
  /** Index jobs that a server runs at once for its local user. Each is a thread with a heap of its own. */
  servedIndexJobs: 2,
  codeBatchFiles: 1_000,
  codeBatchBytes: 2 * 1024 * 1024,
  /** Paths in one page of a manifest or one request for hashes: about 1 MB of JSON. */
  codeManifestPaths: 10_000,
  /** Skipped files, and failed files, in the report of an index job. */
  codeReportFiles: 1_000,
  /** Characters of a reason in that report. */
  codeReportTextChars: 2_000,
  /** Files that one list of the index returns. */
  codeFilesListed: 1_000,
  globChars: 500,
  symbolChars: 200,
  /** Characters of a regular expression or of a text to search for exactly. */
  patternChars: 1_000,
  /** Matching lines in one answer of an exact search. */
  codeMatches: 1_000,
  /** Milliseconds after which an exact search returns what it has found. Below the time limit of a search, so that the answer arrives. */
  codeGrepMs: 6_000,
  /** Steps from a symbol to its callers and their callers. Further ones say little. */
  codeImpactDepth: 5,
  codeContextLines: 100,
  /** The maximum time that one request waits for a job. Proxies close idle connections after about a minute. */
  codeJobWaitMs: 20_000,
  /** Milliseconds that a call waits at most for a lock, a connection or a migration; a call with a shorter time limit waits less. */
  lockWaitMs: 30_000,
  /** Length of a run or node id. */
  runKeyChars: 200,
  /** Store larger states in a file or a table. A checkpoint must fit into memory twice. */
  runStateBytes: 100_000_000,
  /** Smaller states cost more to compress than they save. */
  runCompressAboveBytes: 1_000_000,
  /** The question of a pause, or the reason of a failure. */
  runNoteChars: 64_000,
  /** The JSON of a graph's shape: several thousand nodes. The runs of a larger graph are drawn by their steps. */
  runShapeChars: 1_000_000,
  /** An answer is part of a checkpoint's note. */
  runAnswerChars: 20_000,
  /** The input of a run that is queued by a call. */
  runInputChars: 1_000_000,
  /** Checkpoints that are read to count the path of a run through its graph. Older ones are not counted. */
  runPathCheckpoints: 20_000,
  /** Changes between two states in one answer. */
  runStateChanges: 500,
  /** Runs that one worker executes at the same time. */
  workerConcurrency: 1_000,
  /** A system's id names its file, so it is short and plain. */
  systemIdChars: 100,
  /** Component, port and message id make one key; together they must fit into an index of PostgreSQL. */
  systemNameChars: 100,
  systemMessageIdChars: 300,
  /** Each component has a queue in every process that uses it. */
  systemComponents: 1_000,
  /** A process keeps all ports of the components that it uses in memory. */
  systemPorts: 1_000,
  systemStateKeyChars: 300,
  /** Store larger data in a file and put its path into the message. */
  systemMessageBytes: 1024 * 1024,
  systemStateValueBytes: 1024 * 1024,
  /** The writes of one effect commit in one transaction. */
  systemEffectWrites: 1_000,
  systemEffectTimeoutMs: 30_000,
  /** Messages of one component that wait in memory for their commit. Further messages are refused until some are stored. */
  systemQueueMessages: 10_000,
  systemQueueBytes: 64 * 1024 * 1024,
  /** Messages per commit: enough for 1,000 messages per second at one commit per second. */
  systemBatchMessages: 2_000,
  systemBatchBytes: 8 * 1024 * 1024,
  /** Out-of-order offsets that a port tracks beyond a missing one. */
  systemOffsetsAhead: 100_000,
  /** Messages of one port that wait for an effect. */
  systemPendingMessages: 100_000,
  systemReasonChars: 2_000,
  /** A cursor contains a component and a port, in base64. */
  systemCursorChars: 2_000,
  systemAttempts: 1_000,
  /** A snapshot is built in memory. Use backups for larger systems. */
  systemSnapshotBytes: 256 * 1024 * 1024,
  systemSnapshotsKept: 1_000,
} as const;

/** The connections of one process to a PostgreSQL database. A server process keeps some 86 kB for each schema it has used, so connections are renewed. */
export const POSTGRES_DEFAULTS = { poolMax: 8, connectionLifetimeS: 1_800, connectionMaxUses: 50_000 } as const;

/** Settings of the connections to PostgreSQL. `preparedStatements` is detected unless it is given. */
export type PostgresSettings = Partial<Record<keyof typeof POSTGRES_DEFAULTS, number>> & {
  readonly preparedStatements?: boolean | undefined;
};
