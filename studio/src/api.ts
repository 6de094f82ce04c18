// The server's API. A page that was written to a file has no server: it contains its trace.
import type { Trace } from "./trace";

export interface Model {
  name: string;
  task?: string; // translation, classification, tagging, questions, modeling or forecasting
  labels?: string[]; // or tags
  source_language: string; // BCP 47, or empty
  target_language: string;
  data?: string; // the embedded data set it was trained on
  settings: Settings;
  search?: Record<string, unknown>; // its own, whose length penalty every beam has
  ids?: string[]; // of a forecaster: the names of its first series, …
  series?: number; // … how many it has, …
  season?: number; // … after how many values they repeat, …
  horizon?: number; // … and how many values it forecasts
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

/** The answer to a text: a translation, a label, tags, or a text that begins with the one given. */
export interface Prediction extends Alternative {
  source: string;
  source_tokens: string[];
  offset: number;
  alternatives: Alternative[];
  probabilities?: Record<string, number>; // of labels, the likeliest first
  spans?: Span[]; // of tags that mark spans
  prompt_tokens?: number; // tokens of a text that were given
}

export interface Span {
  label: string;
  start: number;
  end: number; // not included
  text: string;
}

/** A text, and the settings of its search. */
export interface PredictRequest {
  model: string;
  text: string;
  beam?: number;
  n_best?: number;
  temperature?: number;
  top_k?: number;
  top_p?: number;
  seed?: number;
  length?: number;
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

/** All models; those that forecast are listed apart. */
export async function models(): Promise<Model[]> {
  const found = await get<{ models: Model[]; forecasters?: Model[] }>("v1/models");
  return [...found.models, ...(found.forecasters ?? [])];
}

/** A series, and how much of what is to come is wanted. */
export interface ForecastRequest {
  model: string;
  series?: string;
  horizon: number;
  quantiles: number[];
  seed: number;
  attention: boolean;
}

/** What is to come in a series of T steps, and the S past values that were read. */
export interface Forecast {
  series: string;
  time: string[]; // (T)
  quantiles: Record<string, number[]>; // by level, (T)
  past: { time: string[]; value: (number | null)[] }; // (S); null where a value is missing
  attention: number[][]; // (T, S), or (T, 0) without attention
}

export const forecast = async (request: ForecastRequest, signal?: AbortSignal): Promise<Forecast> =>
  (await post<{ forecasts: Forecast[] }>("v1/forecast", request, signal)).forecasts[0];

interface Answer<T> {
  predictions: T[];
}

/** An answer, with attention or with the whole trace. */
export const predict = async (request: PredictRequest, signal?: AbortSignal): Promise<Prediction> =>
  (await post<Answer<Prediction>>("v1/predict", { ...request, attention: true }, signal)).predictions[0];

/** The answers to several texts at once. */
export const predictAll = async (model: string, text: string[], signal?: AbortSignal): Promise<Prediction[]> =>
  (await post<Answer<Prediction>>("v1/predict", { model, text }, signal)).predictions;

export type Traced = Prediction & { trace: Trace };

export const predictAndTrace = async (request: PredictRequest, signal?: AbortSignal): Promise<Traced> =>
  (await post<Answer<Traced>>("v1/predict", { ...request, trace: true }, signal)).predictions[0];

export async function trace(request: PredictRequest, signal?: AbortSignal): Promise<Trace> {
  const { trace, prompt_tokens } = await predictAndTrace(request, signal);
  return { ...trace, prompt_tokens };
}

/** The text so far. */
export interface Part {
  text: string;
  tokens: string[];
}

/** An answer as it is made: `so` gets every part, and the whole is returned. */
export async function followed(request: PredictRequest, signal: AbortSignal, so: (part: Part) => void): Promise<Prediction> {
  const body = JSON.stringify({ ...request, attention: true, stream: true });
  const headers = { "Content-Type": "application/json" };
  const response = await reach("v1/predict", { method: "POST", headers, body, signal });
  if (!response.ok || !response.body) return answer(response);
  for await (const [name, data] of events(response.body)) {
    if (name === "part") so(data as Part);
    else if (name === "answer") return (data as Answer<Prediction>).predictions[0];
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
