import { describe, expect, it } from "vitest";
import { parseSeriesText } from "../../src/explain/seriesText.ts";
import { labelText } from "../../src/route/labelText.ts";

describe("a series written in PromQL's notation", () => {
  it.each([
    { name: "a metric alone", text: "up", pairs: [["__name__", "up"]] },
    { name: "no labels", text: "{}", pairs: [] },
    {
      name: "a metric and labels, with blanks and a last comma",
      text: ' up { job = "node" , zone="a", } ',
      pairs: [
        ["__name__", "up"],
        ["job", "node"],
        ["zone", "a"],
      ],
    },
    {
      name: "the name as a label",
      text: '{__name__="up",job="node"}',
      pairs: [
        ["__name__", "up"],
        ["job", "node"],
      ],
    },
    {
      name: "quoted names",
      text: '{"http.requests","service.name"=\'a"b\'}',
      pairs: [
        ["__name__", "http.requests"],
        ["service.name", 'a"b'],
      ],
    },
    {
      name: "escapes",
      text: String.raw`{a="\"\\\n\t\x41\u00e9\U0001f600\101"}`,
      pairs: [["a", '"\\\n\tAé😀A']],
    },
    {
      name: "order and duplicates as they stand",
      text: '{b="1",a="2",b="3"}',
      pairs: [
        ["b", "1"],
        ["a", "2"],
        ["b", "3"],
      ],
    },
  ])("reads $name", ({ text, pairs }) => {
    expect(parseSeriesText(text)).toEqual(pairs);
  });

  it.each([
    { text: "", message: 'column 1: want a metric name or "{", got the end' },
    { text: '{a="1"', message: 'column 7: want "}", got the end' },
    { text: "{a=1}", message: 'column 4: want a value in quotes, got "1}"' },
    { text: '{a="1"} x', message: 'column 9: want the end, got "x"' },
    { text: '{1a="1"}', message: 'column 2: want a label name, got "1a=\\"1\\"}"' },
    { text: '{a "1"}', message: 'column 4: want "=", got "\\"1\\"}"' },
    { text: String.raw`{a="\q"}`, message: String.raw`unknown escape \q` },
    { text: String.raw`{a="\Uffffffff"}`, message: String.raw`unknown escape \Uffffffff` },
  ])("says where $text is wrong", ({ text, message }) => {
    expect(() => parseSeriesText(text)).toThrow(new SyntaxError(message));
  });

  it.each(['up{job="node"}', '{"http.requests"="x",a="\\n"}', '{__name__="a b"}', "{}"])(
    "reads back %s as it is written",
    (text) => {
      expect(labelText(parseSeriesText(text))).toBe(text);
    },
  );
});
