// What differs between tasks, in one table: the input, what an answer is called, and which views there are.
import type { View } from "./address";

export type Search = "beam" | "sampling" | "none";

export interface Task {
  view: string; // the name of the first view
  answer: string; // what an answer is called
  label: string; // of the text box
  placeholder: string;
  busy: string;
  hint: string; // on an empty page
  blank: boolean; // whether an empty text has an answer
  search: Search;
  changes: boolean; // whether What if can change attention
  maps: boolean; // whether a matrix of attention says anything
  candidates: string; // what a step chooses from
  paired: boolean; // whether each step belongs to one token of the text
  axes: [string, string]; // of a matrix of attention: its columns, its rows
  names?: Partial<Record<View, string>>; // of views that are called otherwise
  parts?: boolean; // whether the text is a passage and, in its last line, a question
  examples: Record<string, string[]>; // by the embedded data set of the model
  without: Partial<Record<View, string>>; // views that it does not have, and why
}

const DATES = ["mercredi 17 décembre 1969", "2024年2月29日", "٣ مارس ١٩٩٩", "7. März 2023"];
const STORY = "Ada enters the hall. Ada takes the map. Hugo strolls into the cellar. Ada hurries to the attic.";
const ROOMS = [`${STORY}\tWhere is Ada?`, `${STORY}\tWhere is the map?`];

export const TASKS: Record<string, Task> = {
  translation: {
    view: "Translate",
    answer: "translation",
    label: "Sentence to translate",
    placeholder: "Type a sentence",
    busy: "translating",
    hint: "Type a sentence to see what the model attends to.",
    blank: false,
    search: "beam",
    changes: true,
    maps: true,
    candidates: "Candidates for the next token",
    paired: false,
    axes: ["source", "target"],
    examples: { dates: DATES },
    without: {},
  },
  classification: {
    view: "Classify",
    answer: "label",
    label: "Text to classify",
    placeholder: "Type a text",
    busy: "classifying",
    hint: "Type a text to see its label, and the words that the model attends to.",
    blank: false,
    search: "none",
    changes: true,
    maps: true,
    candidates: "Labels",
    paired: false,
    axes: ["text", "label"],
    examples: { languages: DATES },
    without: {
      align: "A label has one row of weights for each query. Classify shows them on the text.",
      beam: "A label is found in one step, so there is no tree to show. Classify shows the probability of every label.",
    },
  },
  tagging: {
    view: "Tag",
    answer: "tagging",
    label: "Text to tag",
    placeholder: "Type a text",
    busy: "tagging",
    hint: "Type a text to see the tag of each token.",
    blank: false,
    search: "none",
    changes: false,
    maps: false,
    candidates: "Tags of this token",
    paired: true,
    axes: ["token", "tag"],
    examples: { "date-parts": DATES },
    without: {
      step: "A tag is read from the state of its own token, so there are no weights to step through. Tag shows every tag with its probability.",
      align: "Each tag belongs to its own token, so there is nothing to align. Tag shows every tag below its token.",
    },
  },
  questions: {
    view: "Answer",
    answer: "answer",
    label: "Passage, and a question in the last line",
    placeholder: "Type a passage, and a question in the last line",
    busy: "answering",
    hint: "Type a passage, and a question in the last line, to see the answer and where the model finds it.",
    blank: false,
    search: "beam",
    changes: true,
    maps: true,
    candidates: "Candidates for the next token",
    paired: false,
    axes: ["passage and question", "answer"],
    parts: true,
    examples: Object.fromEntries(["rooms", ...["one", "two", "three", "before", "yes-no", "counting"].map((kind) => `rooms-${kind}`)].map((name) => [name, ROOMS])),
    without: {},
  },
  modeling: {
    view: "Generate",
    answer: "text",
    label: "Beginning of the text",
    placeholder: "Type the beginning of a text, or nothing",
    busy: "generating",
    hint: "Type the beginning of a text to see how the model continues it.",
    blank: true,
    search: "sampling",
    changes: false,
    maps: true,
    candidates: "Candidates for the next token",
    paired: false,
    axes: ["earlier", "token"],
    names: { align: "Look back" },
    examples: { diary: ["Today is", "Yesterday was", "A week ago it was"] },
    without: {},
  },
  forecasting: {
    view: "Forecast",
    answer: "forecast",
    label: "Series",
    placeholder: "",
    busy: "forecasting",
    hint: "Choose a series to see its forecast, and the past values that it looks at.",
    blank: true,
    search: "none",
    changes: false,
    maps: true,
    candidates: "",
    paired: false,
    axes: ["past", "step"],
    examples: {},
    without: {
      step: "A forecast is made of sampled paths, not of tokens. Forecast shows the past values that each of its steps looks at.",
      align: "A forecast has no tokens to align. Forecast shows the past values that each of its steps looks at.",
      beam: "A forecast is sampled, so there is no tree to show. Forecast shows quantiles of the paths.",
      whatif: "A forecast has no tokens to change. Forecast shows the past values that each of its steps looks at.",
      compare: "Compare shows texts. Measure forecasters side by side with: regarde compare RUN RUN --data FILE",
    },
  },
};
