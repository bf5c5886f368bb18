//! `/llms.txt`: what a model needs first, and links to the rest. The format is that of the llms.txt convention: a title, a
//! summary, then sections of links.

use super::reference::escaped;
use crate::domain::union::Union;
use crate::operations::wording::{self, CONSENT_RULE_FOR_ALL};
use crate::operations::{ALL, Access};

pub(super) fn text(union: &Union) -> String {
    let Union { name, base_url, join_site, .. } = union;
    let operations: String = ALL
        .iter()
        .map(|operation| {
            let spec = &operation.spec;
            let key = if spec.access == Access::Agent { ", needs a partner's key" } else { "" };
            format!(
                "- [{0}]({base_url}/docs.md#{0}): {1}; `{2} {3}`{key}\n",
                spec.id,
                spec.title,
                spec.method.name(),
                spec.path
            )
        })
        .collect();
    format!(
        "# {}\n\n> {}\n\n{}\n\n{CONSENT_RULE_FOR_ALL} A sign-up counts only once the person has pressed the button that \
         the mail to them leads to: tell them to check their inbox.\n\n## Operations\n\n{operations}\n\
         ## Reference\n\n\
         - [The whole reference as Markdown]({base_url}/docs.md): keys, consent, limits, retries, errors, every field, MCP, webhooks, sandbox\n\
         - [The same as a page]({base_url}/docs)\n\
         - [OpenAPI 3.1]({base_url}/openapi.json): the five operations\n\
         - [OpenAPI 3.1 of the partner API]({base_url}/partner/openapi.json): what became of a partner's own sign-ups\n\
         - [MCP server]({base_url}/mcp): the same operations as tools, over Streamable HTTP; [how to add it]({base_url}/docs.md#mcp)\n\n\
         ## For people\n\n\
         - [Join]({})\n- [Campaigns]({}): what is negotiated now; [the same as JSON]({}.json)\n- [About the union]({join_site}/about)\n- [What it keeps of people]({})\n- [What joining means]({terms})\n- [How rewards work]({terms}#referrals)\n",
        escaped(name),
        escaped(&wording::what_it_is(union)),
        escaped(&wording::who_and_where(union)),
        union.join_page(),
        union.campaigns_page(),
        union.campaigns_page(),
        union.privacy_page(),
        terms = union.terms_page(),
    )
}
