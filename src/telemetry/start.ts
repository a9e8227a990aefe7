import { DiagLogLevel, diag, type MeterProvider, metrics } from "@opentelemetry/api";
import { VERSION } from "../model/version.ts";
import type { Log } from "../ports/log.ts";
import { observeProcess } from "./process-metrics.ts";

export interface TelemetryOptions {
  /** Keep the metrics for Prometheus. */
  readonly prometheus?: boolean;
  /** Send spans and metrics; by default when there is an endpoint to send them to. */
  readonly otlp?: boolean | undefined;
  /** Where spans and metrics are sent by OTLP over HTTP, such as `http://localhost:4318`. Without it, the OTEL_ variables decide. */
  readonly otlpEndpoint?: string | undefined;
  readonly serviceName?: string | undefined;
  /** The share of traces that is sent, 0 to 1; a caller's own decision goes first. */
  readonly sampleRatio?: number | undefined;
  /** How often metrics are sent by OTLP. */
  readonly metricIntervalMs?: number | undefined;
  readonly log?: Log | undefined;
}

export interface Telemetry {
  /** All metrics as Prometheus reads them. */
  prometheus(): Promise<string>;
  /** Sends what was not sent yet, and stops. */
  close(): Promise<void>;
}

/** A collector that does not answer must not keep the process from ending. */
const CLOSE_TIMEOUT_MS = 3_000;

/**
 * Starts the metrics and the export of this process. Metrics for Prometheus need no SDK; the export by OTLP does. Without a use for
 * them, nothing is loaded, and every span and metric is an empty call.
 */
export async function startTelemetry(options: TelemetryOptions = {}): Promise<Telemetry> {
  const { prometheus = false, log } = options;
  const disabled = process.env.OTEL_SDK_DISABLED?.toLowerCase() === "true";
  const otlp = !disabled && (options.otlp ?? (options.otlpEndpoint !== undefined || hasOtlpVariable()));
  const ending: (() => unknown)[] = [];
  const providers: MeterProvider[] = [];
  let text = async () => "# metrics are off\n";
  if (otlp && log) diag.setLogger(diagnostics(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });

  if (prometheus) {
    const registry = (await import("./metric-registry.ts")).metricRegistry();
    providers.push(registry);
    text = () => registry.text();
  }
  if (otlp) {
    const { SDK_PACKAGES, startOtlp } = await import("./otlp.ts");
    const started = await startOtlp(options);
    if (started) {
      providers.push(started.meters);
      ending.push(...started.ending);
    } else log?.warn({}, `No spans or metrics are exported: the OpenTelemetry SDK is missing. Run npm install ${SDK_PACKAGES.join(" ")}`);
  }
  if (providers.length > 0) {
    const provider = providers.length === 1 ? providers[0]! : (await import("./tee-meters.ts")).teeMeters(providers);
    ending.push(observeProcess(provider.getMeter("cairn", VERSION)));
    if (metrics.setGlobalMeterProvider(provider)) ending.push(() => metrics.disable());
  }

  return {
    prometheus: () => text(),
    async close() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, CLOSE_TIMEOUT_MS);
      });
      await Promise.race([Promise.allSettled(ending.splice(0).map(async (end) => end())), late]);
      clearTimeout(timer);
    },
  };
}

function hasOtlpVariable(): boolean {
  return ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"].some(
    (name) => process.env[name],
  );
}

function diagnostics(log: Log) {
  const say = (level: "warn" | "debug") => (message: string) => log[level]({ source: "opentelemetry" }, String(message).slice(0, 500));
  return { error: say("warn"), warn: say("warn"), info: say("debug"), debug: say("debug"), verbose: say("debug") };
}
