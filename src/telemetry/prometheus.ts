import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { type IMetricReader, MetricReader } from "@opentelemetry/sdk-metrics";

/** A reader that is asked, instead of a server of its own as OpenTelemetry's exporter brings. */
class AskedReader extends MetricReader {
  protected async onShutdown(): Promise<void> {}
  protected async onForceFlush(): Promise<void> {}
}

/** The same metrics that OTLP would send, as Prometheus reads them. */
export async function prometheusReader(): Promise<{ readonly reader: IMetricReader; readonly read: () => Promise<string> }> {
  const reader = new AskedReader();
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  return {
    reader,
    async read() {
      const { resourceMetrics } = await reader.collect();
      return `${serializer.serialize(resourceMetrics)}\n`;
    },
  };
}
