import type { Config } from "../config/schema.ts";
import type { Log } from "../ports/log.ts";
import { logger } from "../telemetry/logger.ts";
import { startTelemetry, type Telemetry } from "../telemetry/start.ts";

/** The log and the telemetry of a process that stays, as the configuration wants them. Both keep off stdout. */
export async function watch(config: Config, { prometheus = false } = {}): Promise<{ log: Log; telemetry: Telemetry }> {
  const { enabled, endpoint, serviceName, sampleRatio } = config.telemetry;
  const log = logger({ level: config.log.level });
  return { log, telemetry: await startTelemetry({ prometheus, otlp: enabled, otlpEndpoint: endpoint, serviceName, sampleRatio, log }) };
}
