"""The expression language of manifests: parsed and checked wherever a manifest is read, evaluated only in the box.

`grammar` and `signatures` use nothing but the standard library, and `core` imports them too: one language, one parser
(docs/explanation/decisions/one-language.md). `evaluation` and `operations` belong to the engine.
"""
