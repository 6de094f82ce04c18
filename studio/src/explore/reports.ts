// What `regarde lab` has found out about models, as the server tells it.
import { get } from "../api";

export interface Point {
  group: string;
  pairs: number;
  value: number;
  low: number;
  high: number;
}

export interface Report {
  name: string;
  test: string;
  budget: string;
  lengths: string;
  metric: { label: string; percent: boolean; digits: number; higher_is_better: boolean };
  models: { name: string; points: Point[] }[];
}

export const reports = (): Promise<Report[]> => get<{ reports: Report[] }>("studio/reports").then((found) => found.reports);

/** A value of the report's metric as it is written. */
export const written = (value: number, { metric }: Report): string =>
  `${(metric.percent ? value * 100 : value).toFixed(metric.digits)}${metric.percent ? " %" : ""}`;
