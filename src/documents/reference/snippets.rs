//! Snippets that call an operation: from a shell, Python, TypeScript and an MCP client. `tests/docs/check` runs every one of
//! them unchanged.

use serde_json::Value;

use super::prose::fence;

/// What the examples call a request by; any id that a partner has for it will do.
pub(super) const IDEMPOTENCY_KEY: &str = "sign-up-1042";

/// The same for a request that signs no one up: a key stands for one request.
pub(super) const IDEMPOTENCY_KEY_OF_A_LINK: &str = "link-1042";

pub(super) struct SnippetCall<'a> {
    pub base_url: &'a str,
    /// What MCP calls the operation, if it is a tool.
    pub tool: Option<&'a str>,
    /// The variable that holds the key.
    pub key: &'a str,
    pub method: &'a str,
    pub path: &'a str,
    pub body: Option<&'a Value>,
    pub needs_key: bool,
    /// The `Idempotency-Key` that belongs with it, if one does.
    pub name: Option<&'a str>,
}

/// One snippet beside the other, in Markdown.
pub(super) fn of(call: &SnippetCall<'_>) -> String {
    [
        fence("bash", "curl", &call.curl()),
        fence("python", "Python", &call.python()),
        fence("ts", "TypeScript", &call.typescript()),
        call.tool.map(|tool| fence("python", "MCP", &call.mcp(tool))).unwrap_or_default(),
    ]
    .concat()
}

impl SnippetCall<'_> {
    /// Whether nothing else of it tells the method.
    fn names_method(&self) -> bool {
        self.method != "GET" && self.body.is_none()
    }

    fn curl(&self) -> String {
        // With a body curl posts by itself.
        let method = if self.names_method() { format!("-X {} ", self.method) } else { String::new() };
        let mut lines = vec![format!("curl {method}{}{}", self.base_url, self.path)];
        if self.needs_key {
            lines.push(format!("-H \"Authorization: Bearer ${}\"", self.key));
        }
        if let Some(body) = self.body {
            lines.push("-H \"Content-Type: application/json\"".to_owned());
            if let Some(name) = self.name {
                lines.push(format!("-H \"Idempotency-Key: {name}\""));
            }
            // A quote ends the text, stands by itself and begins it again.
            lines.push(format!("-d '{}'", indented(&pretty(body), "  ").replace('\'', "'\\''")));
        }
        lines.join(" \\\n  ")
    }

    fn python(&self) -> String {
        let Self { base_url, path, .. } = self;
        if !self.needs_key {
            return format!(
                "import json\nimport urllib.request\n\n\
                 with urllib.request.urlopen(\"{base_url}{path}\", timeout=10) as answer:\n    print(json.load(answer))"
            );
        }
        let mut lines = vec![
            "import json\nimport os\nimport urllib.request\n".to_owned(),
            "request = urllib.request.Request(".to_owned(),
            format!("    \"{base_url}{path}\","),
        ];
        if self.names_method() {
            lines.push(format!("    method=\"{}\",", self.method));
        }
        if let Some(body) = self.body {
            lines.push(format!("    data=json.dumps({}).encode(),", indented(&python_literal(body), "    ")));
        }
        lines.push("    headers={".to_owned());
        lines.push(format!("        \"Authorization\": f\"Bearer {{os.environ['{}']}}\",", self.key));
        if self.body.is_some() {
            lines.push("        \"Content-Type\": \"application/json\",".to_owned());
        }
        if let Some(name) = self.name {
            lines.push(format!("        \"Idempotency-Key\": \"{name}\","));
        }
        lines.push("    },\n)".to_owned());
        lines.push(
            "with urllib.request.urlopen(request, timeout=10) as answer:\n    print(json.load(answer))".to_owned(),
        );
        lines.join("\n")
    }

    fn typescript(&self) -> String {
        let Self { base_url, path, method, .. } = self;
        let mut lines = Vec::new();
        if self.needs_key {
            lines.push(format!("const answer = await fetch(\"{base_url}{path}\", {{"));
            if self.body.is_some() || self.names_method() {
                lines.push(format!("  method: \"{method}\","));
            }
            lines.push(format!("  headers: {{\n    Authorization: `Bearer ${{process.env.{}}}`,", self.key));
            if self.body.is_some() {
                lines.push("    \"Content-Type\": \"application/json\",".to_owned());
            }
            if let Some(name) = self.name {
                lines.push(format!("    \"Idempotency-Key\": \"{name}\","));
            }
            lines.push("  },".to_owned());
            if let Some(body) = self.body {
                lines.push(format!("  body: JSON.stringify({}),", indented(&pretty(body), "  ")));
            }
            lines.push("});".to_owned());
        } else {
            lines.push(format!("const answer = await fetch(\"{base_url}{path}\");"));
        }
        lines.push("if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);".to_owned());
        lines.push("console.log(await answer.json());".to_owned());
        lines.join("\n")
    }

    /// On the official client of Python, which is called `mcp` there.
    fn mcp(&self, tool: &str) -> String {
        let Self { base_url, .. } = self;
        let arguments = self.body.map(python_literal).unwrap_or_else(|| "{}".to_owned());
        let (imports, connect, indent) = match self.needs_key {
            false => (
                "import asyncio\n\nfrom mcp import Client",
                format!("    async with Client(\"{base_url}/mcp\") as union:"),
                "        ",
            ),
            true => (
                "import asyncio\nimport os\n\nimport httpx2\nfrom mcp import Client\nfrom mcp.client.streamable_http import streamable_http_client",
                format!(
                    "    key = {{\"Authorization\": f\"Bearer {{os.environ['UNION_KEY']}}\"}}\n\
                     \x20   async with httpx2.AsyncClient(headers=key) as http:\n\
                     \x20       async with Client(streamable_http_client(\"{base_url}/mcp\", http_client=http)) as union:"
                ),
                "            ",
            ),
        };
        format!(
            "{imports}\n\n\nasync def main():\n{connect}\n{indent}result = await union.call_tool(\"{tool}\", {})\n\
             {indent}print(result.structured_content)\n\n\nasyncio.run(main())",
            indented(&arguments, indent)
        )
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Every line but the first moved to the right.
fn indented(text: &str, by: &str) -> String {
    text.replace('\n', &format!("\n{by}"))
}

/// JSON as Python has it: the same but for three words.
fn python_literal(value: &Value) -> String {
    let lines = pretty(value);
    let word = |line: &str| {
        let (body, comma) = line.strip_suffix(',').map_or((line, ""), |body| (body, ","));
        for (json, python) in [("true", "True"), ("false", "False"), ("null", "None")] {
            if let Some(before) = body.strip_suffix(json)
                && (before.ends_with(": ") || before.trim().is_empty())
            {
                return format!("{before}{python}{comma}");
            }
        }
        line.to_owned()
    };
    lines.lines().map(word).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_becomes_python_where_it_is_not_already() {
        let value = json!({ "a": true, "b": [false, null], "c": "is: true", "d": "null" });
        let python = python_literal(&value);
        for part in ["\"a\": True,", "False,\n", "    None\n", "\"c\": \"is: true\"", "\"d\": \"null\""] {
            assert!(python.contains(part), "{part} in {python}");
        }
    }

    #[test]
    fn a_quote_in_a_body_does_not_end_it_for_the_shell() {
        let body = json!({ "otherComments": "don't" });
        let call = SnippetCall {
            base_url: "https://union.example",
            tool: Some("signUpUser"),
            key: "UNION_KEY",
            method: "POST",
            path: "/v1/invite",
            body: Some(&body),
            needs_key: true,
            name: Some(IDEMPOTENCY_KEY),
        };
        assert!(call.curl().contains("don'\\''t"), "{}", call.curl());
    }
}
