class KazooException(Exception):
    pass
