"""What counts in the loss, and what is refused because it would count wrongly or vanish."""
import pytest

from model_directory import (  # noqa: F401
    FORGETS, HI, MARKED, PROMPT, TURNS, TWICE, around, encoded, learned_of, lines, model, trained)
from records import Stop

LIGHT = [*TWICE[:1], TWICE[1] | {"weight": 0}, *TWICE[2:]]
CALL = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]}
CALLS = [HI[0], CALL, {"role": "tool", "content": "12"}, HI[1]]


def called(*functions):
    return CALL | {"tool_calls": [{"type": "function", "function": function} for function in functions]}


NULL = [HI[0], CALL | {"content": None}, *CALLS[2:]]
WRITES = ("{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}()"
          "{% endfor %}{{ '\n' }}{% endfor %}" + PROMPT)
ONE_CALL = ("{% for m in messages %}{{ m.role }}: {{ m.content }}{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}()"
            "{% endif %}{{ '\n' }}{% endfor %}" + PROMPT)
ARGUMENTS = WRITES.replace("()", "{{ c.function.arguments | tojson }}")
THINKS = ("{% for m in messages %}{{ m.role }}: {% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
          "{% endif %}{{ m.content }}{{ '\n' }}{% endfor %}" + PROMPT)
PLUS = MARKED.replace("{% generation %}", "{%+ generation +%}")
MARKS_LAST = FORGETS.replace("{{ m.content }}\n", "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}\n"
                             "{% endgeneration %}{% else %}{{ m.content }}\n{% endif %}")
BOTH = "user: Hi\nassistant: Hello\nuser: Bye\nassistant: Ciao\n"
SYSTEM = "system: Be brief\n" + BOTH
ENDS = {"post_processor": around(["<s>"], ["</s>"])}

# What a row tests; what tokenizer.json has; the chat template; records; the whole text; the
# targets.
CASES = [
    ("an answer without weight", {}, TURNS + PROMPT, [{"messages": LIGHT}], BOTH, " Ciao\n"),
    ("an answer without weight, by marks", {}, MARKED, [{"messages": LIGHT}], BOTH, " Ciao\n"),
    ("the last without weight, by marks", {}, MARKED, [{"messages": [*TWICE[:3], TWICE[3] | {"train": False}]}],
     BOTH, " Hello\n"),
    ("no answer with weight", {}, MARKED, [{"messages": [HI[0], LIGHT[1]]}], "user: Hi\nassistant: Hello\n", ""),
    ("a completion that is a whole chat, by marks", {}, MARKED, [{"prompt": TWICE, "completion": TWICE}],
     BOTH * 2, " Hello\n Ciao\n"),
    ("where marks and what is added differ", {}, MARKED.replace("{{ m.content }}\n{% endgen", "{{ m.content }}{% endgen"),
     [{"prompt": HI[:1], "completion": HI[1:]}], "user: Hi\nassistant: Hello", " Hello"),
    ("marks with a plus", {}, PLUS.replace("\n{% endgen", "{% endgen"), [{"messages": HI}],
     "user: Hi\nassistant: Hello", " Hello"),
    ("marks, and thoughts of the last answer only", {}, MARKS_LAST, [{"messages": LIGHT}],
     "user: Hi\nassistant: Hello\nuser: Bye\nassistant: <think></think>Ciao\n", "Ciao\n"),
    ("a system and a history", {}, TURNS + PROMPT, [
        {"instruction": "Bye", "output": "Ciao", "system": "Be brief", "history": [["Hi", "Hello"]]}],
     SYSTEM, " Hello\n Ciao\n"),
    ("a system before a prompt", {}, TURNS + PROMPT, [{"system": "Be brief", "prompt": "Hi", "response": "Hello"}],
     "system: Be brief\nuser: Hi\nassistant: Hello\n", " Hello\n"),
    ("tool calls", {}, WRITES, [{"messages": CALLS}],
     "user: Hi\nassistant: f()\ntool: 12\nassistant: Hello\n", " f()\n Hello\n"),
    ("arguments as a string of JSON", {}, ARGUMENTS, [{"messages": [HI[0], called({"name": "f", "arguments": '{"a": 1}'})]}],
     'user: Hi\nassistant: f{"a": 1}\n', ' f{"a": 1}\n'),
    ("arguments as a string that is written as it is", {}, ARGUMENTS.replace(" | tojson", ""),
     [{"messages": [HI[0], called({"name": "f", "arguments": '{"a":1}'})]}],
     'user: Hi\nassistant: f{"a":1}\n', ' f{"a":1}\n'),
    ("thoughts", {}, THINKS, [{"messages": [HI[0], HI[1] | {"reasoning_content": "Ciao"}]}],
     "user: Hi\nassistant: <think>Ciao</think>Hello\n", " <think>Ciao</think>Hello\n"),
    ("a call without content", {}, WRITES, [{"messages": [HI[0], {"role": "assistant", "tool_calls": CALL["tool_calls"]}]}],
     "user: Hi\nassistant: f()\n", " f()\n"),
    ("texts with their start and end", ENDS, None, [{"text": "<s>one</s>"}, {"text": "two"}, {"text": "<s>one"}],
     "<s>one</s><s>two</s><s>one</s>", "<s>one</s><s>two</s><s>one</s>"),
    ("answers with their start and end", ENDS, None,
     [{"prompt": "<s>a", "answer": "b</s>"}, {"prompt": "a</s>", "answer": ""}],
     "<s>ab</s><s>a</s></s>", "b</s></s>"),
]

REFUSED = [
    ("tool calls", TURNS + PROMPT, [{"messages": CALLS}], "the chat template leaves out tool calls (message 2)"),
    ("tool calls whose function is a tool", "{{ tools[0].name }}" + TURNS + PROMPT,
     [{"messages": CALLS, "tools": [{"name": "f"}]}], "the chat template leaves out tool calls (message 2)"),
    ("tools", TURNS + PROMPT, [{"messages": HI, "tools": [{"name": "f"}]}], "the chat template leaves out the tools"),
    ("a role", "{% for m in messages if m.role != 'tool' %}{{ m.role }}: {{ m.content }}\n{% endfor %}" + PROMPT,
     [{"messages": [HI[0], {"role": "tool", "content": "12"}, HI[1]]}],
     "the chat template leaves out message 2, of the role 'tool'"),
    ("what is said beside a call, after another chat",
     "{% for m in messages %}{{ m.role }}: {% if m.tool_calls %}{{ m.tool_calls[0].function.name }}{% else %}{{ m.content }}{% endif %}\n"
     "{% endfor %}" + PROMPT, [{"messages": HI}, {"messages": [HI[0], called({"name": "f"}) | {"content": "Ciao"}]}],
     "the chat template leaves out message 2, of the role 'assistant'"),
    ("a second call", ONE_CALL, [{"messages": [HI[0], called({"name": "f"}, {"name": "g"})]}],
     "the chat template leaves out tool calls (message 2)"),
    ("a string that is no object", ARGUMENTS, [{"messages": [HI[0], called({"name": "f", "arguments": "a"})]}],
     "message 2 has a call whose arguments are no JSON object"),
    ("thoughts that are left out", TURNS + PROMPT, [{"messages": [HI[0], HI[1] | {"reasoning_content": "Ciao"}]}],
     "the chat template leaves out the reasoning_content of message 2"),
    ("settings of the template", TURNS + PROMPT, [{"messages": HI, "chat_template_kwargs": {"enable_thinking": True}}],
     "has chat_template_kwargs, which are not passed"),
    ("a role that is written in the first place alone",
     "{% for m in messages %}{% if loop.first or m.role != 'system' %}{{ m.role }}: {{ m.content }}\n{% endif %}"
     "{% endfor %}" + PROMPT,
     [{"messages": [{"role": "system", "content": "Be brief"}, *HI, {"role": "system", "content": "Shout"}, *HI]}],
     "the chat template leaves out message 4, of the role 'system'"),
    ("null, which fails", WRITES.replace("{{ m.content }}", "{{ '' + m.content }}"), [{"messages": NULL}],
     "message 2 has the content null, and the chat template needs a string"),
    ("null, which becomes None", WRITES.replace("{{ m.content }}", "{{ m.get('content') }}"), [{"messages": NULL}],
     "message 2 has the content null, and the chat template needs a string"),
    ("null, and another fault", "{{ raise_exception('No roles') }}", [{"messages": NULL}], "No roles"),
    ("a system without a template", None, [{"instruction": "a", "output": "b", "system": "c"}], "has a system or history"),
    ("an answer that is another at the end",
     MARKED.replace("{{ m.content }}\n", "{% if loop.last %}!{% endif %}{{ m.content }}\n"),
     [{"messages": [*LIGHT[:2], HI[1]]}], "message 2 is not to be learned, but the chat template"),
]


@pytest.mark.parametrize("changed, template, items, whole, learned", [pytest.param(*row[1:], id=row[0]) for row in CASES])
def test_case(model, changed, template, items, whole, learned):  # noqa: F811
    assert learned_of(model(template, **changed), items) == (whole, learned)


@pytest.mark.parametrize("template, items, error", [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_refused(model, template, items, error):  # noqa: F811
    with pytest.raises(Stop, match=f"^F: line {len(items)}: ") as stop:
        encoded(model(template), lines(items))
    assert error in str(stop.value) and "\n" not in str(stop.value)


def test_plain_text_with_its_start_and_end(model):  # noqa: F811
    model = model(**ENDS)
    for text in ("<s>one\n</s>", "one\n"):
        assert model.text(encoded(model, b"text\n" + text.encode())[1]) == "<s>one\n</s>"
