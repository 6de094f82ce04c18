// The server, in the words of its own API. A page that was written to a file has none: its trace is inside it.
import type { Trace } from "./trace";

export interface Model {
  name: string;
  source_language: string; // BCP 47, or empty
  target_language: string;
  data?: string; // the embedded data set it was trained on
  settings: Settings;
}

/** The [model] table of a model's configuration. */
export interface Settings {
  kind: string;
  [key: string]: unknown;
}

/** One of the n best. */
export interface Said {
  text: string;
  score: number;
  finished: boolean;
  tokens: string[];
  token_scores: number[];
  attention: number[][] | null; // (T, S), row t explains token t - offset
}

export interface Translation extends Said {
  source_tokens: string[];
  offset: number;
  alternatives: Said[];
}

export interface Asked {
  model: string;
  text: string;
  beam: number;
  n_best: number;
}

/** What went wrong, in one line. */
export class Problem extends Error {}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return answer<T>(await reach(path, { signal }));
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return answer<T>(await reach(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
}

async function reach(path: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem("The server does not answer. Is `regarde studio` still running?");
  }
}

async function answer<T>(response: Response): Promise<T> {
  const body = await response.json().catch(() => null);
  if (response.ok) return body as T;
  throw new Problem(body?.error ?? body?.detail ?? `The server answered ${response.status}.`);
}

export const models = (): Promise<Model[]> => get<{ models: Model[] }>("v1/models").then((found) => found.models);

interface Answer {
  translations: Translation[];
  traces?: Trace[];
}

export const translate = async (asked: Asked, signal?: AbortSignal): Promise<Translation> =>
  (await post<Answer>("v1/translate", { ...asked, attention: true }, signal)).translations[0];

export const trace = async (asked: Asked, signal?: AbortSignal): Promise<Trace> =>
  (await post<Required<Answer>>("v1/translate", { ...asked, trace: true }, signal)).traces[0];
