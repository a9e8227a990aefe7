import { context, DiagLogLevel, diag, metrics, propagation, trace } from "@opentelemetry/api";
import type { IMetricReader } from "@opentelemetry/sdk-metrics";
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

/** Starts OpenTelemetry for this process. Without a use for it nothing is loaded, and every span and metric stays an empty call. */
export async function startTelemetry(options: TelemetryOptions = {}): Promise<Telemetry> {
  const { prometheus = false, log } = options;
  const disabled = process.env.OTEL_SDK_DISABLED?.toLowerCase() === "true";
  const otlp = !disabled && (options.otlp ?? (options.otlpEndpoint !== undefined || hasOtlpVariable()));
  const ending: (() => unknown)[] = [];
  let text = async () => "# metrics are off\n";
  if (otlp && log) diag.setLogger(diagnostics(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });

  if (prometheus || otlp) {
    const { MeterProvider } = await import("@opentelemetry/sdk-metrics");
    const readers: IMetricReader[] = [];
    if (prometheus) {
      const { reader, read } = await (await import("./prometheus.ts")).prometheusReader();
      readers.push(reader);
      text = read;
    }
    if (otlp) readers.push(await otlpMetrics(options));
    const provider = new MeterProvider({ resource: await resource(options), readers });
    ending.push(observeProcess(provider.getMeter("cairn", VERSION)), () => provider.shutdown());
    if (metrics.setGlobalMeterProvider(provider)) ending.push(() => metrics.disable());
  }
  if (otlp) ending.push(...(await startTracing(options)));

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

/** The exporters read the OTEL_ variables by themselves; an endpoint in the settings goes first. */
function target(endpoint: string | undefined, signal: "traces" | "metrics"): { url?: string } {
  return endpoint === undefined ? {} : { url: `${endpoint.replace(/(?<!\/)\/+$/, "")}/v1/${signal}` };
}

async function otlpMetrics({ otlpEndpoint, metricIntervalMs = 60_000 }: TelemetryOptions): Promise<IMetricReader> {
  const [{ PeriodicExportingMetricReader }, { OTLPMetricExporter }] = await Promise.all([
    import("@opentelemetry/sdk-metrics"),
    import("@opentelemetry/exporter-metrics-otlp-http"),
  ]);
  return new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(target(otlpEndpoint, "metrics")),
    exportIntervalMillis: metricIntervalMs,
    exportTimeoutMillis: Math.min(metricIntervalMs, 10_000),
  });
}

async function startTracing(options: TelemetryOptions): Promise<(() => unknown)[]> {
  const [sdk, { OTLPTraceExporter }, { AsyncLocalStorageContextManager }, { W3CTraceContextPropagator }] = await Promise.all([
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/context-async-hooks"),
    import("@opentelemetry/core"),
  ]);
  const provider = new sdk.TracerProvider({
    resource: await resource(options),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(options.sampleRatio ?? 1) }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter(target(options.otlpEndpoint, "traces")) })],
  });
  const ending: (() => unknown)[] = [() => provider.shutdown()];
  if (trace.setGlobalTracerProvider(provider)) ending.push(() => trace.disable());
  if (context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())) ending.push(() => context.disable());
  if (propagation.setGlobalPropagator(new W3CTraceContextPropagator())) ending.push(() => propagation.disable());
  return ending;
}

async function resource({ serviceName = process.env.OTEL_SERVICE_NAME || "cairn" }: TelemetryOptions) {
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = await import("@opentelemetry/resources");
  const ours = resourceFromAttributes({ "service.name": serviceName, "service.version": VERSION });
  return defaultResource()
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(ours);
}

function diagnostics(log: Log) {
  const say = (level: "warn" | "debug") => (message: string) => log[level]({ source: "opentelemetry" }, String(message).slice(0, 500));
  return { error: say("warn"), warn: say("warn"), info: say("debug"), debug: say("debug"), verbose: say("debug") };
}
