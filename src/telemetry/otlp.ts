import { context, type MeterProvider, propagation, trace } from "@opentelemetry/api";
import { VERSION } from "../model/version.ts";
import type { TelemetryOptions } from "./start.ts";

/** The packages of the OpenTelemetry SDK that an export needs. They are optional peer dependencies: most users export nothing. */
export const SDK_PACKAGES = [
  "@opentelemetry/sdk-metrics@2",
  "@opentelemetry/sdk-trace@2",
  "@opentelemetry/resources@2",
  "@opentelemetry/core@2",
  "@opentelemetry/context-async-hooks@2",
  "@opentelemetry/exporter-metrics-otlp-http@0.223",
  "@opentelemetry/exporter-trace-otlp-http@0.223",
] as const;

export interface OtlpExport {
  readonly meters: MeterProvider;
  /** Functions that send what was not sent yet, and stop. */
  readonly ending: readonly (() => unknown)[];
}

/** Starts the export of spans and metrics by OTLP over HTTP. Returns nothing if the SDK is not installed. */
export async function startOtlp(options: TelemetryOptions): Promise<OtlpExport | undefined> {
  const sdk = await loadSdk();
  if (!sdk) return undefined;
  const resource = sdk.resources
    .defaultResource()
    .merge(sdk.resources.detectResources({ detectors: [sdk.resources.envDetector] }))
    .merge(sdk.resources.resourceFromAttributes({ "service.name": serviceName(options), "service.version": VERSION }));

  const { metricIntervalMs = 60_000, otlpEndpoint } = options;
  const reader = new sdk.metrics.PeriodicExportingMetricReader({
    exporter: new sdk.metricExporter.OTLPMetricExporter(target(otlpEndpoint, "metrics")),
    exportIntervalMillis: metricIntervalMs,
    exportTimeoutMillis: Math.min(metricIntervalMs, 10_000),
  });
  const meters = new sdk.metrics.MeterProvider({ resource, readers: [reader] });

  const tracers = new sdk.traces.TracerProvider({
    resource,
    sampler: new sdk.traces.ParentBasedSampler({ root: new sdk.traces.TraceIdRatioBasedSampler(options.sampleRatio ?? 1) }),
    spanProcessors: [
      new sdk.traces.BatchSpanProcessor({ exporter: new sdk.traceExporter.OTLPTraceExporter(target(otlpEndpoint, "traces")) }),
    ],
  });
  const ending: (() => unknown)[] = [() => meters.shutdown(), () => tracers.shutdown()];
  if (trace.setGlobalTracerProvider(tracers)) ending.push(() => trace.disable());
  if (context.setGlobalContextManager(new sdk.contexts.AsyncLocalStorageContextManager().enable())) ending.push(() => context.disable());
  if (propagation.setGlobalPropagator(new sdk.core.W3CTraceContextPropagator())) ending.push(() => propagation.disable());
  return { meters, ending };
}

async function loadSdk() {
  try {
    const [metrics, traces, resources, core, contexts, metricExporter, traceExporter] = await Promise.all([
      import("@opentelemetry/sdk-metrics"),
      import("@opentelemetry/sdk-trace"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/core"),
      import("@opentelemetry/context-async-hooks"),
      import("@opentelemetry/exporter-metrics-otlp-http"),
      import("@opentelemetry/exporter-trace-otlp-http"),
    ]);
    return { metrics, traces, resources, core, contexts, metricExporter, traceExporter };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

function serviceName(options: TelemetryOptions): string {
  return options.serviceName ?? (process.env.OTEL_SERVICE_NAME || "cairn");
}

/** The exporters read the OTEL_ variables by themselves; an endpoint in the settings has priority. */
function target(endpoint: string | undefined, signal: "traces" | "metrics"): { url?: string } {
  return endpoint === undefined ? {} : { url: `${endpoint.replace(/(?<!\/)\/+$/, "")}/v1/${signal}` };
}
