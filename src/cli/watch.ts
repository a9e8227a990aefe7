import type { Config } from "../config/schema.ts";
import type { Log } from "../ports/log.ts";
import { startTelemetry, type Telemetry } from "../telemetry/start.ts";

/** The log and the telemetry of a process that stays, as the configuration wants them. Both keep off stdout. */
export async function watch(config: Config, { prometheus = false } = {}): Promise<{ log: Log; telemetry: Telemetry }> {
  const { logger } = await import("../telemetry/logger.ts");
  const log = logger({ level: config.log.level });
  return { log, telemetry: await telemetryOf(config, { prometheus, log }) };
}

/** Where spans and metrics of this process go; without an endpoint nothing is loaded and they go nowhere. */
export function telemetryOf({ telemetry }: Config, options: { prometheus?: boolean; log?: Log } = {}): Promise<Telemetry> {
  const { enabled, endpoint, serviceName, sampleRatio } = telemetry;
  return startTelemetry({ ...options, otlp: enabled, otlpEndpoint: endpoint, serviceName, sampleRatio });
}
