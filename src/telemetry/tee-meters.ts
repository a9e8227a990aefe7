import { type Attributes, createNoopMeter, type Meter, type MeterProvider, type MetricOptions, type Observable } from "@opentelemetry/api";

/** Combines meter providers: every metric is recorded in each of them. Serves `/metrics` and an OTLP export at the same time. */
export function teeMeters(providers: readonly MeterProvider[]): MeterProvider {
  return {
    getMeter(name, version) {
      const meters = providers.map((provider) => provider.getMeter(name, version));
      const observable = (kind: "createObservableGauge" | "createObservableCounter") => (metric: string, options?: MetricOptions) => {
        const instruments: Observable[] = meters.map((meter) => meter[kind](metric, options));
        return {
          addCallback: (callback: Parameters<Observable["addCallback"]>[0]) => {
            for (const instrument of instruments) instrument.addCallback(callback);
          },
          removeCallback: (callback: Parameters<Observable["addCallback"]>[0]) => {
            for (const instrument of instruments) instrument.removeCallback(callback);
          },
        };
      };
      return Object.assign(Object.create(createNoopMeter()) as Meter, {
        createCounter(metric: string, options?: MetricOptions) {
          const counters = meters.map((meter) => meter.createCounter(metric, options));
          return { add: (value: number, attributes?: Attributes) => counters.forEach((counter) => void counter.add(value, attributes)) };
        },
        createHistogram(metric: string, options?: MetricOptions) {
          const histograms = meters.map((meter) => meter.createHistogram(metric, options));
          return { record: (value: number, attributes?: Attributes) => histograms.forEach((one) => void one.record(value, attributes)) };
        },
        createObservableGauge: observable("createObservableGauge"),
        createObservableCounter: observable("createObservableCounter"),
      });
    },
  };
}
