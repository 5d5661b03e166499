// How the processes of a measurement talk: commands as lines on stdin, one JSON object a line on stdout.

/** Call `each` with every line of a readable stream. */
export function onLine(stream, each) {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (piece) => {
    const lines = (text + piece).split("\n");
    text = lines.pop();
    for (const line of lines) if (line.trim() !== "") each(line.trim());
  });
}

/** Call `each` with every command; whoever gives them being gone ends this process, after `end`. */
export function onCommand(each, end = () => {}) {
  onLine(process.stdin, each);
  process.stdin.on("end", async () => {
    await end();
    process.exit(0);
  });
}

export function emit(object) {
  process.stdout.write(JSON.stringify(object) + "\n");
}

/** Tell why there is nothing to measure, and end. */
export function fail(error) {
  process.stdout.write(JSON.stringify({ ev: "error", error: String(error?.stack ?? error) }) + "\n", () =>
    process.exit(1),
  );
}
