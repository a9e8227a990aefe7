import {
  type Attributes,
  type BatchObservableCallback,
  createNoopMeter,
  type Meter,
  type MeterProvider,
  type MetricOptions,
  type Observable,
  type ObservableCallback,
} from "@opentelemetry/api";
import { type MetricFamily, prometheusText, type Sample } from "./prometheus-text.ts";

/** Seconds; for a histogram that names no boundaries of its own. */
const DEFAULT_BOUNDARIES = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Label sets that one metric keeps. Operations, error codes and systems stay far below; the limit bounds memory if a label ever takes
 * its value from input. Further sets are dropped.
 */
const SERIES_MAX = 2_000;

/** A meter provider that keeps the metrics in memory for Prometheus. It needs no OpenTelemetry SDK. */
export interface MetricRegistry extends MeterProvider {
  /** Returns all metrics in the Prometheus text format. Observable metrics are measured now. */
  text(): Promise<string>;
}

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: MetricFamily["type"];
  read(): Promise<readonly Sample[]>;
}

/** Creates a registry for the kinds of metrics that Cairn uses: counters, histograms and observable gauges and counters. */
export function metricRegistry(): MetricRegistry {
  const families = new Map<string, Family>();
  const meter = registryMeter((family) => {
    families.set(family.name, family);
  });
  return {
    getMeter: () => meter,
    async text() {
      const read = await Promise.all([...families.values()].map(async (family) => ({ ...family, samples: await family.read() })));
      return prometheusText(read);
    },
  };
}

function registryMeter(add: (family: Family) => void): Meter {
  const observable = (type: "counter" | "gauge") => (name: string, options?: MetricOptions) => {
    const callbacks = new Set<ObservableCallback>();
    add({ name, help: options?.description ?? "", type, read: () => measure(callbacks) });
    const instrument: Observable = {
      addCallback: (callback) => void callbacks.add(callback),
      removeCallback: (callback) => void callbacks.delete(callback),
    };
    return instrument;
  };
  return Object.assign(Object.create(createNoopMeter()) as Meter, {
    createCounter(name: string, options?: MetricOptions) {
      const sums = series(() => ({ value: 0 }));
      add({ name, help: options?.description ?? "", type: "counter", read: async () => sums.all() });
      return {
        add(value: number, attributes: Attributes = {}) {
          const sum = sums.of(attributes);
          if (sum) sum.value += value;
        },
      };
    },
    createHistogram(name: string, options?: MetricOptions) {
      const boundaries = options?.advice?.explicitBucketBoundaries ?? DEFAULT_BOUNDARIES;
      const rows = series(() => ({ value: 0, sum: 0, boundaries, buckets: new Array<number>(boundaries.length).fill(0) }));
      add({ name, help: options?.description ?? "", type: "histogram", read: async () => rows.all() });
      return {
        record(value: number, attributes: Attributes = {}) {
          const row = rows.of(attributes);
          if (!row) return;
          row.value++;
          row.sum += value;
          for (const [index, boundary] of boundaries.entries()) if (value <= boundary) row.buckets[index]!++;
        },
      };
    },
    createObservableGauge: observable("gauge"),
    createObservableCounter: observable("counter"),
    addBatchObservableCallback(_callback: BatchObservableCallback) {
      throw new Error("This registry has no batch callbacks: add a callback to each instrument.");
    },
  });
}

/** Keeps one row per set of labels. */
function series<Row extends object>(create: () => Row) {
  const rows = new Map<string, Row & { readonly attributes: Attributes }>();
  return {
    of(attributes: Attributes): Row | undefined {
      const key = JSON.stringify(Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1)));
      const found = rows.get(key);
      if (found || rows.size >= SERIES_MAX) return found;
      const row = { attributes, ...create() };
      rows.set(key, row);
      return row;
    },
    all: () => [...rows.values()],
  };
}

async function measure(callbacks: ReadonlySet<ObservableCallback>): Promise<Sample[]> {
  const samples: Sample[] = [];
  const result = { observe: (value: number, attributes: Attributes = {}) => void samples.push({ value, attributes }) };
  await Promise.all([...callbacks].map(async (callback) => callback(result)));
  return samples;
}
