# The sample goes where packages keep examples, so that an installation never touches a config in use.
exampledir = $(docdir)/examples
dist_example_DATA = etc/tgspool.yaml
