// Runs a command against the server with the partner's key added to every request, for a judge that cannot be given one.
//
//     add-key.js COMMAND ARGUMENT...      the server is at UNION_URL, the key in UNION_KEY
//
// Wherever an argument names the server, the command is told of a place before it. Nothing else of a request is changed
// there, neither the order nor the spelling of a header, because headers are part of what is judged.

import { spawn } from "node:child_process";
import http from "node:http";

const { UNION_URL: url, UNION_KEY: key } = process.env;
const { hostname, port } = new URL(url);

const before = http.createServer((request, response) => {
  const { method, url: path, rawHeaders } = request;
  // A list of headers is sent as it stands, so the judge's own `Host` reaches the server.
  const headers = [...rawHeaders, "Authorization", `Bearer ${key}`];
  const onward = http.request({ hostname, port, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  request.pipe(onward);
});

before.listen(0, "127.0.0.1", () => {
  const place = `http://127.0.0.1:${before.address().port}`;
  const [command, ...parts] = process.argv.slice(2).map((argument) => argument.replace(url, place));
  spawn(command, parts, { stdio: "inherit" }).on("exit", (status) => process.exit(status ?? 1));
});
