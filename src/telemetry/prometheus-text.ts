import type { Attributes } from "@opentelemetry/api";

export interface Sample {
  readonly attributes: Attributes;
  /** The value; of a histogram, the number of recorded values. */
  readonly value: number;
  /** A histogram's sum, upper boundaries and, for each boundary, the number of values at or below it. */
  readonly sum?: number;
  readonly boundaries?: readonly number[];
  readonly buckets?: readonly number[];
}

export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly Sample[];
}

/** Writes metrics in the Prometheus text format, version 0.0.4. Metrics without samples are left out. */
export function prometheusText(families: readonly MetricFamily[]): string {
  const lines = families.filter(({ samples }) => samples.length > 0).flatMap(familyLines);
  return lines.length > 0 ? `${lines.join("\n")}\n` : "# no metrics yet\n";
}

function familyLines({ name, help, type, samples }: MetricFamily): string[] {
  const metric = metricName(name, type);
  return [
    ...(help ? [`# HELP ${metric} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`] : []),
    `# TYPE ${metric} ${type}`,
    ...samples.flatMap((sample) => sampleLines(metric, sample)),
  ];
}

function sampleLines(metric: string, { attributes, value, sum, boundaries, buckets }: Sample): string[] {
  if (!boundaries || !buckets) return [`${metric}${labels(attributes)} ${number(value)}`];
  const bucket = (le: string, count: number) => `${metric}_bucket${labels({ ...attributes, le })} ${count}`;
  return [
    `${metric}_count${labels(attributes)} ${value}`,
    `${metric}_sum${labels(attributes)} ${number(sum ?? 0)}`,
    ...boundaries.map((boundary, index) => bucket(number(boundary), buckets[index]!)),
    bucket("+Inf", value),
  ];
}

/** Replaces characters that Prometheus does not allow in a name; a counter ends in `_total`. */
function metricName(name: string, type: MetricFamily["type"]): string {
  const allowed = name.replace(/[^a-zA-Z0-9_:]/g, "_").replace(/^(?=\d)/, "_");
  return type === "counter" && !allowed.endsWith("_total") ? `${allowed}_total` : allowed;
}

function labels(attributes: Attributes): string {
  const pairs = Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name.replace(/[^a-zA-Z0-9_]/g, "_")}="${escapeLabel(String(value))}"`],
  );
  return pairs.length > 0 ? `{${pairs.join(",")}}` : "";
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function number(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";
}
