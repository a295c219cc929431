import type * as Sdk from "@carillon/sdk/schedule";
import { answer } from "../answer.js";
import { Failure, reportOf } from "../failure.js";
import { type Line, parseJson } from "../input.js";
import type { Output } from "../output.js";
import { readQuestion } from "../question.js";

/** Answers are collected up to this many characters: a write for each would cost more than the answer. */
const WRITE_AT = 256 * 1024;

/** Answers in order, one per line; a bad line gets its error, and the rest continues. */
export async function answerAll(sdk: typeof Sdk, input: AsyncIterable<Line[]>, out: Output): Promise<void> {
  for await (const lines of input) {
    let text = "";
    for (const line of lines) {
      text += `${JSON.stringify(answerLine(sdk, line))}\n`;
      if (text.length < WRITE_AT) continue;
      await out.write(text);
      text = "";
    }
    await out.write(text);
    if (out.closed) return;
  }
}

function answerLine(sdk: typeof Sdk, { text, number, fault }: Line): object {
  try {
    if (text === undefined)
      throw new Failure({ code: "INVALID_SCHEDULE", message: `line ${number}: ${fault}.` });
    return answer(sdk, readQuestion(sdk, parseJson(text, "Give one JSON object a line."), Date.now()));
  } catch (error) {
    const { code, message } = reportOf(error);
    return { error: { code, message } };
  }
}
