import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Deque } from "../../src/deliver/deque.ts";

type Step = "push" | "unshift" | "dropFirst" | "dropLast";

/** Does a step with an array, which is the model, and with a deque. */
function doBoth(step: Step, item: number, model: number[], deque: Deque<number>): void {
  switch (step) {
    case "push":
      model.push(item);
      deque.push(item);
      break;
    case "unshift":
      model.unshift(item);
      deque.unshift(item);
      break;
    case "dropFirst":
      model.shift();
      deque.dropFirst();
      break;
    case "dropLast":
      model.pop();
      deque.dropLast();
      break;
  }
}

function drain(deque: Deque<number>): number[] {
  const items: number[] = [];
  for (let item = deque.first; item !== undefined; item = deque.first) {
    items.push(item);
    deque.dropFirst();
  }
  return items;
}

describe("a deque", () => {
  it("holds what an array would, whatever is done at its ends", () => {
    const step = fc.constantFrom<Step>("push", "push", "unshift", "unshift", "dropFirst", "dropLast");
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const model: number[] = [];
        const deque = new Deque<number>();
        steps.forEach((each, item) => {
          doBoth(each, item, model, deque);
          expect([deque.length, deque.first, deque.last]).toEqual([model.length, model[0], model.at(-1)]);
        });
        expect(drain(deque)).toEqual(model);
      }),
      { numRuns: 200 },
    );
  });

  it("keeps its order when it grows with its first item in the middle of the ring", () => {
    const deque = new Deque<number>();
    for (let item = 0; item < 16; item += 1) deque.push(item);
    for (let dropped = 0; dropped < 9; dropped += 1) deque.dropFirst();
    for (let item = 16; item < 100; item += 1) deque.push(item);
    expect(drain(deque)).toEqual(Array.from({ length: 91 }, (_, index) => index + 9));
  });
});
