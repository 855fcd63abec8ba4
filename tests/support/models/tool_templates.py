"""Chat templates that write tools, calls and results as those of well-known families are documented to, on tokenizers
of `template_families`. Written for these tests."""
# ruff: noqa: E501

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from support.models.template_families import tokenizer_of

# Family of the tokenizer, template.
TOOL_TEMPLATES = {
    "hermes": (
        "chatml",
        "{%- if tools %}{{- '<|im_start|>system\\n' }}{%- if messages[0]['role'] == 'system' %}{{- messages[0]['content'] + '\\n\\n' }}{%- endif %}"
        "{{- '<tools>' }}{%- for tool in tools %}{{- '\\n' + tool | tojson }}{%- endfor %}{{- '\\n</tools><|im_end|>\\n' }}"
        "{%- elif messages[0]['role'] == 'system' %}{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}{%- endif %}"
        "{%- for m in messages %}{%- if m['role'] == 'user' %}{{- '<|im_start|>user\\n' + m['content'] + '<|im_end|>\\n' }}"
        "{%- elif m['role'] == 'assistant' %}{{- '<|im_start|>assistant' }}{%- if m['content'] %}{{- '\\n' + m['content'] }}{%- endif %}"
        "{%- for call in m['tool_calls'] or [] %}{{- '\\n<tool_call>\\n{\"name\": \"' + call.function.name + '\", \"arguments\": ' + call.function.arguments | tojson + '}\\n</tool_call>' }}{%- endfor %}"
        "{{- '<|im_end|>\\n' }}"
        "{%- elif m['role'] == 'tool' %}{%- if loop.first or messages[loop.index0 - 1]['role'] != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}"
        "{{- '\\n<tool_response>\\n' + m['content'] + '\\n</tool_response>' }}"
        "{%- if loop.last or messages[loop.index0 + 1]['role'] != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}{%- endif %}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}",
    ),
    "llama": (
        "llama-3",
        "{{- bos_token }}{%- set head = '<|start_header_id|>' %}"
        "{%- if tools %}{{- head + 'system<|end_header_id|>\\n\\nFunctions:' }}{%- for tool in tools %}{{- '\\n' + tool | tojson(indent=2) }}{%- endfor %}{{- '<|eot_id|>' }}{%- endif %}"
        "{%- for m in messages %}{%- if m['role'] == 'tool' %}{{- head + 'ipython<|end_header_id|>\\n\\n' + m['content'] | tojson + '<|eot_id|>' }}"
        "{%- elif m['tool_calls'] %}{{- head + 'assistant<|end_header_id|>\\n\\n' + m['content'] }}"
        "{%- for call in m['tool_calls'] %}{{- '{\"name\": \"' + call.function.name + '\", \"parameters\": ' + call.function.arguments | tojson + '}' }}{%- endfor %}{{- '<|eot_id|>' }}"
        "{%- else %}{{- head + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}{%- endif %}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- head + 'assistant<|end_header_id|>\\n\\n' }}{%- endif %}",
    ),
    # The tools are before the last user turn, so that what is before it changes as a conversation grows.
    "mistral": (
        "mistral-0.3",
        "{{- bos_token }}{%- set users = messages | selectattr('role', 'equalto', 'user') | list %}"
        "{%- for m in messages %}{%- if m['role'] == 'user' %}{%- if tools and m == users[-1] %}{{- '[AVAILABLE_TOOLS] ' + tools | tojson + '[/AVAILABLE_TOOLS]' }}{%- endif %}"
        "{{- '[INST] ' + m['content'] + '[/INST]' }}"
        "{%- elif m['role'] == 'tool' %}{{- '[TOOL_RESULTS] {\"content\": ' + m['content'] + ', \"call_id\": \"' + m['tool_call_id'] + '\"}[/TOOL_RESULTS]' }}"
        "{%- elif m['tool_calls'] %}{{- '[TOOL_CALLS] [' }}{%- for call in m['tool_calls'] %}{{- {'name': call.function.name, 'arguments': call.function.arguments, 'id': call.id} | tojson }}"
        "{%- if not loop.last %}{{- ', ' }}{%- endif %}{%- endfor %}{{- ']' + eos_token }}"
        "{%- elif m['role'] == 'assistant' %}{{- ' ' + m['content'] + eos_token }}{%- endif %}{%- endfor %}",
    ),
}


@cache
def tool_tokenizer_of(name: str) -> Any:
    """A tokenizer with a chat template that writes tools."""
    family, template = TOOL_TEMPLATES[name]
    tokenizer = copy.deepcopy(tokenizer_of(family))
    tokenizer.chat_template = template
    return tokenizer
