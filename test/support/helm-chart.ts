/** The rendered objects of the chart in `deploy/helm/signalbox`. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { ChartRenderer, type Values } from "./go-template.ts";

export const CHART = join(import.meta.dirname, "../../deploy/helm/signalbox");

// oxlint-disable-next-line typescript/no-explicit-any -- tests read any member of an object
export type KubernetesObject = any;

export const readYaml = (file: string) => parse(readFileSync(join(CHART, file), "utf8")) as Values;

/** `values` are merged into values.yaml as by `helm --values`. */
export function renderFiles(values: Values, release = "box"): Map<string, string> {
  const chart = readYaml("Chart.yaml");
  const dot = {
    Values: merge(readYaml("values.yaml"), values),
    Release: { Name: release, Namespace: "apps", Service: "Helm" },
    Chart: { Name: chart["name"], Version: chart["version"], AppVersion: chart["appVersion"] },
  };
  const renderer = new ChartRenderer();
  // Files with definitions come first.
  const files = globSync("templates/*", { cwd: CHART }).toSorted(
    (a, b) => Number(isPartial(b)) - Number(isPartial(a)),
  );
  const rendered = files.map(
    (file) => [file, renderer.render(readFileSync(join(CHART, file), "utf8"), dot)] as const,
  );
  return new Map(rendered.filter(([file]) => !isPartial(file)));
}

export function renderObjects(values: Values, release?: string): KubernetesObject[] {
  return [...renderFiles(values, release)]
    .filter(([file]) => file.endsWith(".yaml"))
    .flatMap(([file, text]) =>
      parseAllDocuments(text).flatMap((document) => {
        if (document.errors.length > 0 || document.warnings.length > 0)
          throw new Error(`${file}: ${[...document.errors, ...document.warnings].join("; ")}\n${text}`);
        const object: KubernetesObject = document.toJS();
        return object === null ? [] : [object];
      }),
    );
}

function isPartial(file: string): boolean {
  return basename(file).startsWith("_");
}

function merge(base: Values, changes: Values): Values {
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(changes)) {
    const below = base[key];
    result[key] = isMap(below) && isMap(value) ? merge(below, value) : value;
  }
  return result;
}

function isMap(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
