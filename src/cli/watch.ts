import type { Config } from "../config/schema.ts";
import type { Log } from "../ports/log.ts";
import { startTelemetry, type Telemetry } from "../telemetry/start.ts";

/** Opens the configured log and telemetry of a long-running process. Neither writes to stdout. */
export async function watch(config: Config, { prometheus = false } = {}): Promise<{ log: Log; telemetry: Telemetry }> {
  const { logger } = await import("../telemetry/logger.ts");
  const log = logger({ level: config.log.level });
  return { log, telemetry: await telemetryOf(config, { prometheus, log }) };
}

/** Starts the configured export of spans and metrics. Without an endpoint nothing is loaded or exported. */
export function telemetryOf({ telemetry }: Config, options: { prometheus?: boolean; log?: Log } = {}): Promise<Telemetry> {
  const { enabled, endpoint, serviceName, sampleRatio } = telemetry;
  return startTelemetry({ ...options, otlp: enabled, otlpEndpoint: endpoint, serviceName, sampleRatio });
}
