// The server's API. A page that was written to a file has no server: it contains its trace.
import type { Trace } from "./trace";

export interface Model {
  name: string;
  source_language: string; // BCP 47, or empty
  target_language: string;
  data?: string; // the embedded data set it was trained on
  settings: Settings;
  layers?: number; // of attention
  formulas?: Formulas;
}

/** What a model computes, in LaTeX, as its classes state it; what they do not state is missing. */
export type Formulas = Partial<Record<"score" | "compared" | "weights" | "context" | "query" | "state" | "output" | "encoder", string>>;

/** The [model] table of a model's configuration. */
export interface Settings {
  kind: string;
  [key: string]: unknown;
}

/** One of the n best. */
export interface Alternative {
  text: string;
  score: number;
  finished: boolean;
  tokens: string[];
  token_scores: number[];
  attention: number[][] | null; // (T, S), row t explains token t - offset
}

export interface Translation extends Alternative {
  source_tokens: string[];
  offset: number;
  alternatives: Alternative[];
}

export interface TranslateRequest {
  model: string;
  text: string;
  beam: number;
  n_best: number;
}

/** What went wrong, in one line; `status` is the server's, 0 without an answer. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly status = 0,
  ) {
    super(message);
  }
}

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
  throw new Problem(body?.error ?? body?.detail ?? `The server answered ${response.status}.`, response.status);
}

export const models = (): Promise<Model[]> => get<{ models: Model[] }>("v1/models").then((found) => found.models);

interface Answer {
  translations: (Translation & { trace: Trace })[];
}

export const trace = async (asked: TranslateRequest, signal?: AbortSignal): Promise<Trace> =>
  (await post<Answer>("v1/translate", { ...asked, trace: true }, signal)).translations[0].trace;

/** What is said so far. */
export interface Part {
  text: string;
  tokens: string[];
}

/** A translation, told as it is made: `so` hears every part, the answer comes last. */
export async function followed(asked: TranslateRequest, signal: AbortSignal, so: (part: Part) => void): Promise<Translation> {
  const body = JSON.stringify({ ...asked, attention: true, stream: true });
  const headers = { "Content-Type": "application/json" };
  const response = await reach("v1/translate", { method: "POST", headers, body, signal });
  if (!response.ok || !response.body) return answer(response);
  for await (const [name, data] of events(response.body)) {
    if (name === "part") so(data as Part);
    else if (name === "answer") return (data as Answer).translations[0];
    else throw new Problem((data as { error: string }).error);
  }
  throw new Problem("The server closed the connection before the answer was complete.");
}

/** Server-sent events, each with its name and its data. */
async function* events(stream: ReadableStream<Uint8Array>): AsyncGenerator<[string, unknown]> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const whole = (waiting + decoder.decode(value, { stream: true })).split("\n\n");
    waiting = whole.pop()!;
    for (const event of whole) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(event)!;
      yield [name, JSON.parse(data)];
    }
  }
}
