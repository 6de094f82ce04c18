// Quality by the length of the source, from the reports of `regarde lab`.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { set, word } from "../address";
import { Grouped } from "../components/grouped";
import { Numbers } from "../components/numbers";
import { problem } from "../session";
import { type Report, reports, written } from "./reports";

export function Quality({ compared }: { compared: string[] }): JSX.Element | null {
  const found = useSignal<Report[] | null>(null);
  useEffect(() => {
    reports().then(
      (answer) => (found.value = answer),
      (error: Error) => (problem.value = error.message),
    );
  }, []);
  if (!found.value) return null;
  const report = found.value.find(({ name }) => name === word("report")) ?? found.value[0];
  return (
    <section class="quality">
      <div class="bar">
        <h2>Quality by length</h2>
        {found.value.length > 1 ? (
          <label class="field">
            <span>Report</span>
            <select value={report.name} onChange={(event) => set({ report: event.currentTarget.value })}>
              {found.value.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        ) : null}
      </div>
      {report ? (
        <ByLength report={report} compared={compared} />
      ) : (
        <p class="quiet">
          To see quality by sentence length, start the studio with <code>--report FOLDER</code>, where FOLDER is a report of{" "}
          <code>regarde lab</code>.
        </p>
      )}
    </section>
  );
}

function ByLength({ report, compared }: { report: Report; compared: string[] }): JSX.Element {
  const groups = report.models[0]?.points ?? [];
  const names = new Set(report.models.map(({ name }) => name));
  return (
    <>
      <p class="quiet">
        {report.metric.label} on {report.test} ({report.metric.higher_is_better ? "higher" : "lower"} is better) after {report.budget} of training
        per model; bars are 95 % bootstrap intervals.
      </p>
      <Grouped
        label={`${report.metric.label} by ${report.lengths}`}
        across={report.lengths}
        up={report.metric.label + (report.metric.percent ? " (%)" : "")}
        counted="pairs"
        groups={groups.map(({ group }) => group)}
        under={groups.map(({ pairs }) => String(pairs))}
        series={report.models}
        lit={new Set(compared.filter((name) => names.has(name)))}
        write={(value) => written(value, report).replace(" %", "")}
      />
      <Numbers
        caption={`${report.metric.label} by ${report.lengths}, with intervals`}
        corner="model"
        columns={groups.map(({ group }) => (
          <>{group}</>
        ))}
        rows={report.models.map(({ name, points }) => ({
          head: <>{name}</>,
          cells: points.map((point) => (
            <>
              {written(point.value, report)}{" "}
              <span class="quiet">
                [{written(point.low, report)}, {written(point.high, report)}]
              </span>
            </>
          )),
        }))}
      />
    </>
  );
}
