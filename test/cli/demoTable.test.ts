import { describe, expect, it } from "vitest";
import { type DemoProgress, demoLine, demoTable } from "../../src/cli/demoTable.ts";
import { Screen } from "../../src/cli/screen.ts";
import { SinkCounts } from "../../src/cli/sinkCounts.ts";

const EMPTY = new SinkCounts("test").stats();
const PROGRESS: DemoProgress = {
  seconds: 12,
  series: 4,
  samplesPerSecond: 600,
  ok: 1_234,
  failed: 1,
  lastFailure: "503: \u001b[2J later",
  upstreams: [
    { name: "sink-0", stats: { ...EMPTY, series: 3_000, samples: 9_000, tasks: ["1", "2"] } },
    { name: "sink-1", stats: { ...EMPTY, series: 1_000, samples: 3_000, tasks: ["3"] } },
  ],
};

describe("demo progress", () => {
  it("shows series, share, tasks and samples of every upstream, and their sums", () => {
    expect(demoTable(PROGRESS).slice(1)).toEqual([
      "  upstream    series    share   tasks     samples",
      "  sink-0       3,000   75.0 %       2       9,000  #######################",
      "  sink-1       1,000   25.0 %       1       3,000  ########",
      "  all          4,000                       12,000",
    ]);
  });

  it("tells of failed requests, without the control characters of the answer", () => {
    const text = "requests 1,234 ok, 1 failed (last: 503: \\u001b[2J later)";
    expect(demoTable(PROGRESS)[0]).toContain(text);
    expect(demoLine(PROGRESS)).toBe(
      `demo: 12 s; sink-0 3,000 series (75.0 %), sink-1 1,000 series (25.0 %); ${text}`,
    );
  });

  it("has shares of zero before anything has arrived", () => {
    const nothing = { ...PROGRESS, upstreams: [{ name: "sink-0", stats: EMPTY }] };
    expect(demoLine(nothing)).toContain("sink-0 0 series (0.0 %)");
  });
});

describe("screen with a table", () => {
  class Recorder {
    text = "";
    readonly columns = 10;
    readonly isTTY: boolean;
    constructor(isTTY: boolean) {
      this.isTTY = isTTY;
    }
    write(text: string): void {
      this.text += text;
    }
  }

  it("draws the table in the place of the one before", () => {
    const stream = new Recorder(true);
    const screen = new Screen(stream);
    screen.draw(["one", "two"]);
    screen.draw(["three"]);
    expect(stream.text).toBe("one\ntwo\n\u001b[2A\u001b[0Jthree\n");
  });

  it("writes lines above the table", () => {
    const stream = new Recorder(true);
    const screen = new Screen(stream);
    screen.draw(["table"]);
    screen.print("line");
    expect(stream.text).toBe("table\n\u001b[1A\u001b[0Jline\ntable\n");
  });

  it("cuts lines that would wrap", () => {
    const stream = new Recorder(true);
    new Screen(stream).draw(["0123456789"]);
    expect(stream.text).toBe("01234567…\n");
  });

  it("tells where nothing can be drawn again", () => {
    expect([new Screen(new Recorder(true)).redraws, new Screen(new Recorder(false)).redraws]).toEqual([
      true,
      false,
    ]);
  });
});
