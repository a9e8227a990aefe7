import { backupOperations } from "../admin/backup-operations.ts";
import { callList } from "../admin/call-operations.ts";
import { databaseOperations } from "../admin/database-operations.ts";
import { projectDelete } from "../admin/delete-project-operation.ts";
import { deletedPurge } from "../admin/deleted-operations.ts";
import { doctorExamine } from "../admin/doctor-operations.ts";
import { keyOperations } from "../admin/key-operations.ts";
import { projectMerge } from "../admin/merge-operation.ts";
import { statsOperations } from "../admin/stats-operations.ts";
import { checkpointOperations } from "../checkpoints/operations.ts";
import { sessionOperations } from "../checkpoints/session-operations.ts";
import { upkeepOperations } from "../checkpoints/upkeep-operations.ts";
import { codeIndexOperations } from "../code/index-operations.ts";
import { codeJobOperations } from "../code/job-operations.ts";
import { codeOperations } from "../code/operations.ts";
import { codeStructureOperations } from "../code/structure/operations.ts";
import { codeUpkeepOperations } from "../code/upkeep-operations.ts";
import { freshnessOperations } from "../freshness/operations.ts";
import { knowledgeDeletionOperations } from "../knowledge/deletion-operations.ts";
import { knowledgeImport } from "../knowledge/import-operation.ts";
import { knowledgeOperations } from "../knowledge/operations.ts";
import { migrateOperations } from "../migrate/operations.ts";
import { embeddingsOperations } from "../recall/operations.ts";
import { reviewOperations } from "../review/operations.ts";
import { runOperations } from "../runs/operations.ts";
import { systemOperations } from "../systems/operations.ts";
import type { Operation } from "./operation.ts";

/** Everything that can be asked of Cairn from outside. The edges are loops over this list. */
export const operations: readonly Operation[] = [
  ...checkpointOperations,
  ...upkeepOperations,
  ...sessionOperations,
  ...knowledgeOperations,
  ...knowledgeDeletionOperations,
  knowledgeImport,
  ...reviewOperations,
  ...codeOperations,
  ...freshnessOperations,
  ...codeStructureOperations,
  ...codeUpkeepOperations,
  ...codeIndexOperations,
  ...codeJobOperations,
  ...embeddingsOperations,
  ...keyOperations,
  ...runOperations,
  ...systemOperations,
  ...databaseOperations,
  ...backupOperations,
  deletedPurge,
  callList,
  doctorExamine,
  ...migrateOperations,
  ...statsOperations,
  projectDelete,
  projectMerge,
];
